"""Figures of agreement made by hand, and a name that means harm in every format."""

from exports.statistics.agreement_schema import (
    Agreement,
    AgreementSlice,
    AnnotatorAgreement,
    Discards,
    Interval,
    LabelAgreement,
    Overlap,
    SliceLabel,
    TaskAgreement,
)

HOSTILE = (
    '=HYPERLINK("http://x")|`a`*b*_c_<script>&amp;@team #1 www.x.org '
    "\\input{/etc/passwd}$x$ %~^{}[y](z)\x1b[31m\r\n– é漢"
)


def interval(low: float, high: float) -> Interval:
    return Interval(low=low, high=high, method="bca")


def label(alpha: float | None = 0.74, low: float | None = 0.62, high: float = 0.83, **more: object) -> LabelAgreement:
    values = {
        "n_items": 200,
        "n_pairable_items": 169,
        "n_ratings": 400,
        "prevalence": 0.69,
        "percent_agreement": 0.89,
        "krippendorff_alpha": alpha,
        "fleiss_kappa": 0.73,
        "gwet_ac1": 0.8,
        "brennan_prediger": 0.78,
        "positive_agreement": 0.92,
        "negative_agreement": 0.83,
        "full_agreement_share": 0.85,
        "mean_pairwise_kappa": 0.72,
        "n_pairs_with_kappa": 3,
        "n_cluster_records": 43,
        "intervals": {} if low is None else {"krippendorff_alpha": interval(low, high)},
        "refused_intervals": {},
        "undefined_resamples": 0.0,
        "p_below": {"0.667": 0.1, "0.800": 0.9},
        "standard_error": 0.05,
        "design_effect": 1.2,
        "n_effective": 140.0,
        "required_items": 81,
        "undefined": {} if alpha is not None else {"krippendorff_alpha": "no_variation"},
        "warnings": (),
    }
    return LabelAgreement.model_validate(values | more)


def task(labels: dict[str, LabelAgreement], **more: object) -> TaskAgreement:
    values = {
        "n_units": 377,
        "n_records": 90,
        "n_duplicates": 0,
        "annotators": ("anna", "ben", "carla"),
        "labels": labels,
        "macro_alpha": 0.74,
        "macro_interval": interval(0.62, 0.83),
        "n_labels_with_alpha": 1,
        "identical_vectors": 0.8,
        "pairs": (),
        "annotators_vs_rest": (),
        "constraint_violations": {},
        "constraint_violations_by_annotator": {},
        "conditional": (),
        "discards": None,
        "overlap": Overlap(units_by_ratings={1: 208, 2: 169}, components=(("anna", "ben", "carla"),), pairs_apart=0),
        "rounds": (),
        "weeks": (),
        "languages": (),
        "changes": (),
        "warnings": (),
    }
    return TaskAgreement.model_validate(values | more)


def agreement(**tasks: TaskAgreement) -> Agreement:
    return Agreement(latest_response=None, seed=0, resamples=2000, inputs=(), tasks=tasks)


def against_rest(name: str, delta: float, low: float, high: float, p_holm: float = 1.0) -> AnnotatorAgreement:
    return AnnotatorAgreement(
        label="misleading",
        rater=name,
        n_ratings=100,
        positive_rate=0.4,
        positive_rate_interval=(0.3, 0.5),
        alpha_without=0.8,
        delta_alpha=delta,
        delta_interval=interval(low, high),
        n_compared=90,
        n_ties=1,
        agreement_with_majority_of_others=0.7,
        kappa_with_majority_of_others=0.4,
        bias_index=-0.1,
        lone_dissents=9,
        disagreement=0.31,
        expected_disagreement=0.14,
        excess=0.17,
        excess_low=0.1,
        excess_high=0.24,
        p=p_holm / 2,
        p_holm=p_holm,
        stands_out=p_holm < 0.05,
        examples=("r1", "r2", "r3"),
        undefined={},
    )


def part(name: str, alpha: float) -> AgreementSlice:
    found = SliceLabel(
        n_pairable_items=40,
        prevalence=0.5,
        krippendorff_alpha=alpha,
        percent_agreement=0.8,
        interval=interval(alpha - 0.1, alpha + 0.1),
        undefined={},
        positive_rates={"=1+1": 0.25},
    )
    return AgreementSlice(
        name=name, n_records=20, n_units=40, labels={"misleading": found, "topically_relevant": found}
    )


RICH = task(
    {"misleading": label(warnings=("RARE_CLASS",)), "topically_relevant": label(None, None)},
    annotators=("anna", "ben", HOSTILE),
    annotators_vs_rest=(against_rest(HOSTILE, 0.1, 0.02, 0.18, 0.002), against_rest("anna", 0.02, -0.1, 0.1)),
    rounds=(part(HOSTILE, 0.4), part("production", 0.6)),
    discards=Discards(n_responses=4, share=0.024, by_annotator={"anna": 0.0, HOSTILE: 0.1}),
    constraint_violations={"evidence_requires_relevance": 3, "evidence_excludes_misleading": 0},
    warnings=("CONSTRAINT",),
)
