// Buttons of a deployed lab: they ask the program for what the verbs of its command line do.

// controls returns the buttons for what was selected. say shows a line.
export function controls(address, run, what, say) {
  const row = document.createElement("div");
  row.className = "acts-row";
  const button = (text, verb, args) => {
    const b = document.createElement("button");
    b.textContent = text;
    b.addEventListener("click", () => ask(address, verb, args(), say));
    row.append(b);
  };
  if (what.port !== undefined) {
    const name = linkOf(run, run.ports[what.port]);
    for (const change of ["down", "up"]) button(`link ${change}`, "link", () => [name, change]);
    const list = document.createElement("input");
    list.placeholder = "delay=5us,loss=0.1%";
    list.setAttribute("aria-label", `properties of ${name}`);
    list.addEventListener("keydown", (e) => {
      e.stopPropagation();
      if (e.key === "Enter") ask(address, "link", [name, "set", list.value], say);
    });
    row.append(list);
    button("set", "link", () => [name, "set", list.value]);
  } else if (what.node !== undefined && run.nodes[what.node].host) {
    const name = run.nodes[what.node].name;
    for (const change of ["pause", "resume", "kill", "restart"]) button(change, "node", () => [name, change]);
  }
  return row;
}

// linkOf returns the name of a port's link.
function linkOf(run, port) {
  const a = run.nodes[port.from].name, b = run.nodes[port.to].name;
  return (run.model.links ?? []).includes(`${a}-${b}`) ? `${a}-${b}` : `${b}-${a}`;
}

// ask posts an action with the token of the page's address, and says what came of it.
async function ask(address, verb, args, say) {
  say(`${verb} ${args.join(" ")} ...`);
  try {
    const answer = await fetch(address, {
      method: "POST", body: JSON.stringify({ verb, args }),
      headers: { "Content-Type": "application/json", "X-Weft-Token": location.pathname.split("/")[1] },
    });
    say(answer.ok ? `${verb} ${args.join(" ")}: done` : (await answer.text()).trim());
  } catch (err) {
    say(`${verb}: the program does not answer (${err.message})`);
  }
}
