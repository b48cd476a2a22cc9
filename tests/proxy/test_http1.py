"""Our HTTP/1 parsers stand where mitmproxy looks for them, and this is the mitmproxy they were made for."""

from __future__ import annotations

import importlib.metadata
import inspect

from mitmproxy.proxy.layers import http as stock

from secondtake.proxy import http1, http2


def test_the_names_we_replace_are_where_they_were() -> None:
    """DESIGN 3: one name in one guarded place, with a test that fails on another mitmproxy version."""
    assert importlib.metadata.version("mitmproxy").startswith("12.3.")
    source = inspect.getsource(stock.HttpClient)
    assert "Http1Client(self.context)" in source
    assert "Http2Client(self.context)" in source
    http1.install()
    http2.install()
    assert vars(stock)["Http1Client"] is http1.OriginSide
    assert vars(stock)["Http2Client"] is http2.OriginSide


def test_what_we_override_is_still_called() -> None:
    """A renamed method of mitmproxy's would leave its own behaviour in place, silently."""
    for ours, names in (
        (http1.ClientSide, ("send", "read_headers", "read_body", "wait", "done", "mark_done", "make_pipe", "passthrough")),
        (http1.OriginSide, ("send", "read_headers", "read_body", "done", "mark_done")),
        (http2.ClientSide, ("_handle_event", "handle_h2_event", "is_open_for_us", "is_closed")),
        (http2.OriginSide, ("_handle_event", "handle_h2_event", "close_connection")),
        (http2.Farewells, ("_receive_goaway_frame", "acknowledge_received_data")),
    ):
        for name in names:
            assert hasattr(ours.__mro__[1], name), (ours, name)
    assert "event_to_child" in vars(stock.HttpLayer)
    assert {"make_stream", "get_connection", "register_connection"} <= vars(stock.HttpLayer).keys()
