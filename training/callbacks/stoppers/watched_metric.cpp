#include "training/callbacks/stoppers/watched_metric.h"

#include <algorithm>
#include <cctype>

#include "runtime/catalog.h"
#include "runtime/error.h"

namespace tutti {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_loss(const std::string& monitor) {
  const std::string name = lower(monitor);
  for (const char* part : {"loss", "error", "perplexity"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

bool is_greater(const WatchedMetric::Options& options) {
  const std::string comp = lower(options.comp);
  if (comp.empty()) return !is_loss(options.monitor);
  if (comp == "greater" || comp == "gt") return true;
  if (comp == "less" || comp == "lt") return false;
  throw UserError("comp: expected greater, gt, less or lt, found '" + options.comp + "'");
}

}  // namespace

WatchedMetric::WatchedMetric(Options options)
    : options_(std::move(options)), greater_(is_greater(options_)) {}

void WatchedMetric::require(const State& state) const {
  const auto known = state.model->get_metrics(/*is_train=*/false);
  if (std::find(known.begin(), known.end(), options_.monitor) != known.end()) return;
  const std::string near = nearest_name(options_.monitor, known);
  fail("the model measures " + joined(known) + (near.empty() ? "" : "; did you mean " + near + "?"));
}

double WatchedMetric::value(const State& state) const {
  const auto found = state.metric_values.find(options_.dataloader_label + "/" + options_.monitor);
  if (found == state.metric_values.end()) fail("nothing has measured it");
  return found->second;
}

void WatchedMetric::fail(const std::string& why) const {
  throw UserError("monitor = " + options_.monitor + ", dataloader_label = " + options_.dataloader_label +
                  ": there is no such metric; " + why);
}

}  // namespace tutti
