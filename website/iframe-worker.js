// Browsers start no worker for a page from the disk, and the site's search is one. There its script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.frame.srcdoc =
        "<script>window.postMessage = (data) => frameElement.answer(data)</script>" +
        `<script src="${new URL(url, location.href)}"></script>`;
      this.ready = new Promise((loaded) => this.frame.addEventListener("load", loaded));
      const append = () => document.body.append(this.frame);
      document.body ? append() : addEventListener("DOMContentLoaded", append);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
