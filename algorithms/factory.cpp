#include "algorithms/factory.h"

#include <map>
#include <optional>

#include "algorithms/loop/ema.h"
#include "algorithms/loop/gradient_clipping.h"
#include "algorithms/loop/sam.h"
#include "algorithms/loop/swa.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using AlgorithmPtr = std::shared_ptr<Algorithm>;
using AlgorithmMaker = AlgorithmPtr (*)(const Setting& section);

AlgorithmPtr gradient_clipping(const Setting& section) {
  static const std::map<std::string, ClippingType> types = {
      {"norm", ClippingType::kNorm}, {"value", ClippingType::kValue}, {"adaptive", ClippingType::kAdaptive}};
  return std::make_shared<GradientClipping>(types.at(section.at("clipping_type").text()),
                                            section.at("clipping_threshold").number());
}

std::optional<Time> time_if_any(const Setting& section, const char* key) {
  return section.has(key) ? std::optional(Time::parse(section.at(key))) : std::nullopt;
}

std::optional<double> number_if_any(const Setting& section, const char* key) {
  return section.has(key) ? std::optional(section.at(key).number()) : std::nullopt;
}

// For options that do not fit together.
template <class Kind, class Options>
AlgorithmPtr made_of(const Setting& section, const Options& options) try {
  return std::make_shared<Kind>(options);
} catch (const UserError& error) {
  section.fail(error.what());
}

AlgorithmPtr ema(const Setting& section) {
  EMA::Options options{time_if_any(section, "half_life"), number_if_any(section, "smoothing"),
                       Time::parse(section.at("ema_start")), time_if_any(section, "update_interval")};
  if (!options.half_life && !options.smoothing) options.half_life = Time(1000, TimeUnit::kBatch);
  return made_of<EMA>(section, options);
}

AlgorithmPtr sam(const Setting& section) {
  return std::make_shared<SAM>(SAMOptions{section.at("rho").number(), section.at("epsilon").number(),
                                          section.at("interval").integer()});
}

AlgorithmPtr swa(const Setting& section) {
  const bool is_linear = section.at("anneal_strategy").text() == "linear";
  return made_of<SWA>(
      section,
      SWA::Options{Time::parse(section.at("swa_start")), Time::parse(section.at("swa_end")),
                   Time::parse(section.at("update_interval")), section.at("schedule_swa_lr").boolean(),
                   is_linear ? AnnealStrategy::kLinear : AnnealStrategy::kCosine,
                   section.at("anneal_steps").integer(), number_if_any(section, "swa_lr")});
}

const std::map<std::string, AlgorithmMaker>& algorithm_makers() {
  static const std::map<std::string, AlgorithmMaker> all = {
      {"ema", ema}, {"gradient_clipping", gradient_clipping}, {"sam", sam}, {"swa", swa}};
  return all;
}

}  // namespace

AlgorithmPtr make_algorithm(const Setting& section) {
  return algorithm_makers().at(section.at("kind").text())(section);
}

}  // namespace tutti
