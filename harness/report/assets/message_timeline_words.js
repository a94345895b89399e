// Says in words what was pointed at in the timeline. Knows nothing of the picture.
"use strict";
(() => {
  const { moment, duration } = globalThis.messageTimeline;

  const lasting = (start, end) =>
    "from " + moment(start) + " to " + moment(end) + " (" + duration(end - start) + ")";

  // A target is { kind, row }; the answer [heading, sentence, detail].
  function words(target, data, laneName) {
    const { kind, row } = target;
    if (kind === "message") {
      const [sent, arrived, sender, receiver, name, fate, idle, detail] = row;
      const heading = data.names[name] + " from " + laneName(sender) + " to " + laneName(receiver);
      let what = "Sent at " + moment(sent) + ", ";
      if (arrived != null) what += "arrived at " + moment(arrived) + ", " + duration(arrived - sent) + " later";
      else if (fate === "arrived") what += "still under way at the end";
      else what += fate === "lost" ? "lost: it never arrived" : "refused by the receiver's side";
      if (arrived != null && fate !== "arrived") what += ", " + fate;
      return [heading, what + "." + (idle ? " It carries nothing new." : ""), detail];
    }
    if (kind === "reign") {
      const [start, end, lane, role, epoch, leader, detail] = row;
      const follows = leader && leader !== laneName(lane) ? ", leader " + leader : "";
      return [laneName(lane) + ": " + role + " in epoch " + epoch + follows, lasting(start, end) + ".", detail];
    }
    if (kind === "outage") {
      const [start, end, lane, event, detail] = row;
      return [laneName(lane) + " " + event, "Did not run " + lasting(start, end) + ".", detail];
    }
    if (kind === "disk") {
      const [start, end, lane, name, , detail] = row;
      return [laneName(lane) + ", disk: " + name, (end == null ? "At " + moment(start) : lasting(start, end)) + ".", detail];
    }
    if (kind === "log") {
      const [time, , lane, event, offset, detail] = row;
      const what = event === "high-watermark" ? "high watermark is " + offset : event + ", log ends at " + offset;
      return [laneName(lane) + ": " + what, "At " + moment(time) + ".", detail];
    }
    if (kind === "fault") {
      const [start, end, lanes, name, detail] = row;
      const on = lanes.length ? lanes.map(laneName).join(", ") : "all nodes";
      return ["Fault: " + name + " on " + on, "In force " + lasting(start, end) + ".", detail];
    }
    if (kind === "violation") {
      const [time, lane, name, detail] = row;
      return ["Violation: " + name + (lane == null ? "" : " on " + laneName(lane)), "At " + moment(time) + ".", detail];
    }
    const [start, end, lane, count, lost] = row;
    return [
      laneName(lane) + " sent " + count + (count === 1 ? " message" : " messages"),
      "Within " + duration(end - start) + " from " + moment(start) + (lost ? "; " + lost + " of them never arrived." : ".") +
        " Double click to look closer.", "",
    ];
  }

  globalThis.messageTimeline.words = words;
})();
