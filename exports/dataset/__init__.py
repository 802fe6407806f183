"""An export in, typed Parquet files and datasets with splits out."""
