// The wallet's window: what a site asks for, and two buttons for the owner, who shuts it then. Shutting it before refuses.

const port = chrome.runtime.connect({ name: location.hash.slice(1) });

port.onMessage.addListener(({ origin, what, details }) => {
  document.getElementById("origin").textContent = origin;
  for (const [name, value] of Object.entries(details)) {
    const [term, told] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    told.textContent = value;
    told.id = name;
    document.getElementById("details").append(term, told);
  }
  document.getElementById("what").textContent = what;
  const buttons = ["approve", "reject"].map((id) => document.getElementById(id));
  for (const button of buttons) {
    button.disabled = false;
    button.onclick = () => {
      port.postMessage(button.id);
      for (const one of buttons) one.disabled = true;
    };
  }
});
