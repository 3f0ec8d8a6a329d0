#include "algorithms/surgery/stochastic_depth.h"

#include <set>

#include "algorithms/surgery/effect.h"
#include "io/json/json_line.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kComposersBlock = "ResNetBottleneck";

bool is_called(const ResidualBlock& block, const std::string& name) {
  return block.kind() == (name == kComposersBlock ? std::string("Bottleneck") : name);
}

double rate_of(std::size_t block, std::size_t blocks, double drop_rate, DropDistribution distribution) {
  if (distribution == DropDistribution::kUniform) return drop_rate;
  return static_cast<double>(block + 1) / static_cast<double>(blocks) * drop_rate;
}

std::string kinds_of_blocks(Layer& model) {
  std::set<std::string> kinds;
  for (const auto& [name, layer] : layers(model))
    if (dynamic_cast<const ResidualBlock*>(layer)) kinds.insert(layer->kind());
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : ", ") + kind;
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<std::shared_ptr<ResidualBlock>> apply_stochastic_depth(Layer& model,
                                                                   const StochasticDepthOptions& options) {
  std::vector<std::shared_ptr<ResidualBlock>> blocks;
  for (const auto& [name, slot] : slots(model)) {
    auto block = std::dynamic_pointer_cast<ResidualBlock>(slot->share());
    if (!block || !is_called(*block, options.target_layer_name)) continue;
    block->set_drop({.each_sample = options.stochastic_method == StochasticMethod::kSample, .name = name});
    blocks.push_back(std::move(block));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i]->set_drop_rate(rate_of(i, blocks.size(), options.drop_rate, options.drop_distribution));
  return blocks;
}

StochasticDepth::StochasticDepth(StochasticDepthOptions options, const Time& drop_warmup)
    : options_(std::move(options)), drop_warmup_(drop_warmup), drop_rate_(options_.drop_rate) {
  if (options_.drop_rate < 0 || options_.drop_rate > 1) throw UserError("drop_rate: expected 0 to 1");
  if (drop_warmup.value() != 0 && options_.stochastic_method == StochasticMethod::kSample)
    throw UserError("drop_warmup: expected none with stochastic_method = \"sample\"");
}

void StochasticDepth::require(const State& state) const {
  if (blocks_.empty() && options_.target_layer_name != kComposersBlock)
    fail(std::string(state.model->kind()) + " has no residual block '" + options_.target_layer_name +
         "'; its residual blocks (models/layers/residual_block.h): " + kinds_of_blocks(*state.model));
}

bool StochasticDepth::match(Event event, const State&) const {
  return event == Event::kInit || (event == Event::kBatchStart && drop_warmup_.value() > 0);
}

void StochasticDepth::apply(Event event, State& state, Logger& logger) {
  if (event == Event::kInit) {
    operate(state);
    logger.log_metrics({{"stochastic_depth/num_stochastic_layers", static_cast<double>(blocks_.size())}});
    return;
  }
  if (blocks_.empty()) return;
  const double warmed = drop_warmup_.unit() == TimeUnit::kDuration
                            ? state.elapsed_duration().value() / drop_warmup_.value()
                            : elapsed(state.timestamp, drop_warmup_);
  if (warmed < 1)
    set_rate(warmed * options_.drop_rate);
  else if (!state.composer)
    set_rate(options_.drop_rate);
  logger.log_metrics({{"stochastic_depth/drop_rate", warmed < 1 ? drop_rate_ : options_.drop_rate}});
}

void StochasticDepth::operate(State& state) {
  blocks_ = apply_stochastic_depth(*state.model, options_);
  if (options_.drop_rate == 0) state.warn_on_rank_zero("StochasticDepth has no effect: drop_rate is 0");
  warn_without_effect(state, static_cast<int>(blocks_.size()), name(),
                      "residual block '" + options_.target_layer_name + "'");
}

void StochasticDepth::set_rate(double drop_rate) {
  drop_rate_ = drop_rate;
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    blocks_[i]->set_drop_rate(rate_of(i, blocks_.size(), drop_rate, options_.drop_distribution));
}

std::string StochasticDepth::state() const {
  return drop_warmup_.value() > 0 ? json_line({{"drop_rate", drop_rate_}}) : "";
}

void StochasticDepth::restore(const std::string& json) { set_rate(json_number(json, "drop_rate")); }

AlgorithmPtr StochasticDepthAlgorithm::make(const Setting& section) const {
  if (stochastic_method == StochasticMethod::kSample && drop_warmup.value() > 0)
    section.at("drop_warmup").fail("stochastic_method = \"sample\" has no warm-up");
  return std::make_shared<StochasticDepth>(*this, drop_warmup);
}

}  // namespace tutti
