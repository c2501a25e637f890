"""Tests of the blocking functions for video."""

from interlingua import sync
from support.videos import FAST, MODELS, video_peer


def test_a_video_is_made(tmp_path):
    """The same steps as the async functions, each blocking."""
    target = tmp_path / "sea.mp4"
    with video_peer() as peer:
        client = sync.Client(peer.client.calls.adapters)
        settings = {"client": client}
        job = sync.generate_video(
            MODELS["gemini"], "Sea.", output_path=target, poll_interval=FAST, **settings
        )
        assert job.saved_path == str(target)
        model = MODELS["openai_compatible"]
        job = sync.video.create(model, "Sea.", **settings)
        assert sync.video.retrieve(job, **settings).state == "in_progress"
        job = sync.video.wait(job, poll_interval=FAST, **settings)
        size = sync.video.download(job.reference, target, **settings)
        assert size == target.stat().st_size
        other = sync.video.remix(job, "At night.", **settings)
        assert sync.video.cancel(other, **settings).state == "cancelled"
        assert len(sync.video.list("openai_compatible", **settings)) == 3
        sync.video.delete(job, **settings)
        assert len(sync.video.list("openai_compatible", **settings)) == 2
