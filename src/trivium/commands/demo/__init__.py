"""`trivium demo`: a small CNN on real images, trained in three frameworks through Trivium, then converted, read back in
a fresh process, compared and measured. `run` does all of it."""

from trivium.commands.demo.main import run

__all__ = ["run"]
