"""The LangGraph graphs: summariser and retriever."""
