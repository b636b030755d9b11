"""A proxy that speaks OpenAI's API, with headrace between the caller and the server.

``app.make_app(live)`` is the ASGI application and ``headrace serve`` runs it. Stateless: any number
of them may stand behind a balancer.
"""
