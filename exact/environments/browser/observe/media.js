// Returns the state of a video or audio element: {paused, muted, ended, seconds, length}.
function media() {
  return {paused: this.paused, muted: this.muted || this.volume === 0, ended: this.ended, seconds: this.currentTime,
    length: Number.isFinite(this.duration) ? this.duration : null};
}
