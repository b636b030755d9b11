"""The SDK: compress a text, rank documents, answer a question. No server, no account."""

import headrace

notice = "We would like to kindly inform you that order 7F3A-99B was shipped on 12 May 2021 by DHL."
print(headrace.compress(notice, rate=0.6).text)

documents = [
    "Bob sold his boat in 2019.",
    "Ann bought the red car.",
    "The weather was fine in May.",
]
print(headrace.rerank("Who bought the car?", documents, top_k=1)[0].text)
print(headrace.compress_documents("Who bought the car?", documents, rate=0.5).text)

response = headrace.generate(
    "Who bought the car?", documents=documents, top_k=2, rate=0.8, max_tokens=30
)
print(response.text, response.report.to_dict()["tokens_saved"], sep="\n")
