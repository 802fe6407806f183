-- Responses that their annotator gave anew in another workspace, and whether the labels are others.
SELECT row, dataset, record_id, response_id, labels != newest FROM (
    SELECT rows.rowid AS row, dataset, record_id, response_id, labels, workspace,
        first_value(labels) OVER same AS newest, first_value(workspace) OVER same AS newest_workspace
    FROM rows JOIN workspaces USING (dataset) WHERE kind NOT IN ('evidence', 'controls')
    WINDOW same AS (
        PARTITION BY kind, discarded, record_uuid, chunk_id, annotator_id ORDER BY at DESC, response_id DESC
    )
) WHERE workspace != newest_workspace
