"""Prompt injection: what a page says to the machine that reads it, and tells nobody anything of its subject."""

import re

_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|your)\b.{0,30}"
    r"\b(?:instructions?|prompts?)\b"
    r"|\byou are (?:now )?an? (?:[\w-]+ )?(?:AI|assistant|(?:large )?language model|chatbot|LLM)\b"
    r"|\b(?:ignorieren?|vergiss|vergessen|missachten?)\b.{0,40}\b(?:Anweisung|Instruktion|Vorgabe|Prompt)\w*"
    r"|\bdu bist (?:jetzt |nun )?ein\w* (?:KI|Sprachmodell|Assistent|Chatbot)"
    r"|\bSie sind (?:jetzt |nun )?eine? (?:KI|Sprachmodell)"
    r"|(?:以前|これまで|上記|前|すべて|全て)の.{0,8}(?:指示|命令|プロンプト)を?.{0,4}(?:無視|忘れ)"
    r"|あなたは.{0,10}(?:AI|アシスタント|言語モデル)"
    r"|忽略.{0,10}(?:指示|指令|提示)|你是.{0,10}(?:AI|助手|语言模型)",
    re.IGNORECASE,
)


def orders_machine(text: str) -> bool:
    """Whether a text orders the machine that reads it about ("Ignore all previous instructions …").

    By usual wordings in English, German, Japanese and Chinese: what is worded otherwise is not found.
    """
    return bool(_ORDERS.search(text))
