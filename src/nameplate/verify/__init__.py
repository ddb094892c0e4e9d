"""Named checks that a trial or a study is what it claims to be, from its evidence alone."""

from nameplate.verify.directory import verify

__all__ = ["verify"]
