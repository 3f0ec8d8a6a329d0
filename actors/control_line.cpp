#include "actors/control_line.h"

#include <string>
#include <utility>

#include "actors/messages/heartbeat.h"
#include "runtime/probe/probe.h"

namespace tutti {

void ControlLine::send(Context& context, Envelope& envelope, int64_t step) {
  const auto& control = *envelope.message.get_if<SendControl>();
  recorder_.record({context.now(), TraceKind::kControlSent, step, control.to});
  transport_.send(control.to, control.text);
  if (envelope.slot) context.reply(envelope, ControlSent{});
}

void ControlLine::poll(Context& context, int64_t step, bool waits) {
  receive(context, step);
  send_heartbeat(context, waits);
}

void ControlLine::receive(Context& context, int64_t step) {
  while (auto packet = transport_.poll()) {
    if (const auto heartbeat = parse_heartbeat(packet->bytes)) {
      newest_.peers[packet->from] = unreported_.peers[packet->from] = {context.now(), *heartbeat};
    } else {
      recorder_.record({context.now(), TraceKind::kControlReceived, step, packet->from});
      context.send(supervisor_, ControlReceived{packet->from, std::move(packet->bytes)});
    }
  }
  if (!unreported_.peers.empty() && reporting_ && !reporting_.ready())
    TUTTI_PROBE("sync: heartbeats wait until the Supervisor has read the last");
  if (unreported_.peers.empty() || (reporting_ && !reporting_.ready())) return;
  reporting_ = context.request<Noted>(supervisor_, std::exchange(unreported_, {}));
}

// Other ranks send to rank 0; rank 0 sends to all ranks and to itself.
void ControlLine::send_heartbeat(Context& context, bool waits) {
  const TimePoint now = context.now();
  if (now < next_heartbeat_ || place_.world == 1) return;
  next_heartbeat_ = now + kHeartbeatEvery;
  const std::string text = heartbeat_text(recorder_, now, waits);
  if (place_.rank != 0) return transport_.send(0, text);
  for (int r = 1; r < place_.world; ++r) transport_.send(r, text);
  unreported_.peers[0] = {now, parse_heartbeat(text).value()};
}

void ControlLine::throw_with_last_event(Context& context, const LostRankError& lost) const {
  const auto peer = newest_.peers.find(lost.rank());
  if (peer == newest_.peers.end()) {
    TUTTI_PROBE("end: a rank is lost of which nothing was heard");
    return;
  }
  TUTTI_PROBE("end: a collective finds a lost rank");
  Heartbeat last = peer->second.last;
  last.age_s += seconds(context.now() - peer->second.received);
  throw OperatingError(std::string(lost.what()) + "; the last it did: " + last.text(), lost.kind());
}

}  // namespace tutti
