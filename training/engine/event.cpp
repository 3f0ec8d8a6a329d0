#include "training/engine/event.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::array<const char*, kEvents> kNames = {"init",
                                                     "before_load",
                                                     "after_load",
                                                     "fit_start",
                                                     "iteration_start",
                                                     "epoch_start",
                                                     "before_dataloader",
                                                     "after_dataloader",
                                                     "batch_start",
                                                     "before_train_batch",
                                                     "before_forward",
                                                     "after_forward",
                                                     "before_loss",
                                                     "after_loss",
                                                     "before_backward",
                                                     "after_backward",
                                                     "after_train_batch",
                                                     "batch_end",
                                                     "batch_checkpoint",
                                                     "epoch_end",
                                                     "epoch_checkpoint",
                                                     "iteration_end",
                                                     "iteration_checkpoint",
                                                     "fit_end",
                                                     "eval_before_all",
                                                     "eval_start",
                                                     "eval_batch_start",
                                                     "eval_before_forward",
                                                     "eval_after_forward",
                                                     "eval_batch_end",
                                                     "eval_end",
                                                     "eval_after_all",
                                                     "eval_standalone_start",
                                                     "eval_standalone_end",
                                                     "predict_start",
                                                     "predict_batch_start",
                                                     "predict_before_forward",
                                                     "predict_after_forward",
                                                     "predict_batch_end",
                                                     "predict_end"};

constexpr std::pair<const char*, Event> kAliases[] = {{"training_start", Event::kFitStart},
                                                      {"training_end", Event::kFitEnd}};

}  // namespace

const char* name(Event event) { return kNames[static_cast<std::size_t>(event)]; }

Event event_named(std::string_view text) {
  const std::string event_name = lower_case(text);
  const auto place = std::find(kNames.begin(), kNames.end(), event_name);
  if (place != kNames.end()) return static_cast<Event>(place - kNames.begin());
  std::vector<std::string> known(kNames.begin(), kNames.end());
  for (const auto& [alias, event] : kAliases) {
    if (event_name == alias) return event;
    known.emplace_back(alias);
  }
  const std::string nearest = nearest_name(event_name, known);
  throw UserError("there is no event '" + std::string(text) + "'" +
                  (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

bool is_after(Event event) { return std::string_view(name(event)).starts_with("after_"); }

}  // namespace tutti
