#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/actor/scheduler.h"

namespace tutti {

// An actor put together from lambdas; what is left out does nothing.
struct Script {
  std::function<void(Context&)> start = {};
  std::function<void(Context&, Envelope&)> receive = {};
  std::function<std::optional<TimePoint>(Context&)> idle = {};
};

class ScriptedActor final : public Actor {
 public:
  explicit ScriptedActor(Script script) : script_(std::move(script)) {}
  void start(Context& context) override {
    if (script_.start) script_.start(context);
  }
  void receive(Context& context, Envelope& envelope) override {
    if (script_.receive) script_.receive(context, envelope);
  }
  std::optional<TimePoint> idle(Context& context) override {
    return script_.idle ? script_.idle(context) : std::nullopt;
  }

 private:
  Script script_;
};

inline void play(Scheduler& scheduler, ActorId id, Script script) {
  scheduler.install(id, std::make_unique<ScriptedActor>(std::move(script)));
}

}  // namespace tutti
