"""The page: what a browser shows of a running scheduler, and who may open it.

What lives here: the files of the page (``static``: HTML, CSS, ES modules; no build step), how they
are served, and sessions of browsers with a process of this machine. What must not: what the page
shows. It asks the endpoints of ``berth.service.server`` for that, as everybody else does.

The page is served below ``/ui/``, beside those endpoints, whatever prefix is in front of both.
Neighbours: ``berth.service.server`` (the endpoints), ``berth.tools.up`` (``berth up`` serves the
page).
"""
