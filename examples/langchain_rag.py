"""A LangChain RAG chain with two headrace steps: documents are ranked, the prompt is compressed."""

from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

import headrace
from headrace.middleware.langchain import HeadraceCompressor, HeadraceRunnable

QUESTION = "When did Kaplan patent his turbine?"
documents = [
    Document(
        "Viktor Kaplan, who as it happens came from Austria, patented a turbine in 1913.",
        metadata={"page": 3},
    ),
    Document("The Pelton wheel of 1880 is driven by jets of water.", metadata={"page": 4}),
    Document("A runner stone of 1.2 metres weighs about 1,200 kilograms.", metadata={"page": 9}),
]


def small_model(prompt: PromptValue) -> AIMessage:
    """Stand where ChatOpenAI() or any other chat model would: here the model in process."""
    text = "\n".join(str(message.content) for message in prompt.to_messages())
    return AIMessage(headrace.generate(text, plan="off", max_tokens=40).text)


compressor = HeadraceCompressor(top_k=1)
prompt = ChatPromptTemplate.from_template("Use this:\n{context}\n\n{question}")
chain = prompt | HeadraceRunnable(rate=0.8) | RunnableLambda(small_model)

found = compressor.compress_documents(documents, QUESTION)
print([(d.metadata["page"], round(d.metadata["relevance_score"], 3)) for d in found])
context = "\n".join(d.page_content for d in found)
print(chain.invoke({"context": context, "question": QUESTION}).content)
