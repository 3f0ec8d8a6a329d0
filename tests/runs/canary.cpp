// A plugin with a mistake, which simulations of drawn recipes must find: a callback whose state no checkpoint
// has. The metrics of a resumed run are others than those of an undisturbed run.
#include "job/plugin.h"
#include "training/engine/callback.h"
#include "training/state.h"

namespace {

struct Canary final : tutti::Callback {
  std::string name() const override { return "Canary"; }
  void batch_end(tutti::State&, tutti::Logger& logger) override {
    logger.log_metrics({{"canary/steps", static_cast<double>(++steps)}});
  }

  int64_t steps = 0;
};

}  // namespace

void tutti_plugin(tutti::Plugin& plugin) {
  plugin.callbacks["canary"] = [](const tutti::Setting&) { return std::make_shared<Canary>(); };
}
