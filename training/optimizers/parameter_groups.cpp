#include "training/optimizers/parameter_groups.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <map>
#include <set>

namespace tutti {
namespace {

// Without a recipe no catalog has checked the values; torch.optim checks them, too.
void require_not_negative(const Setting& section, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (!(section.at(key).number() >= 0.0)) section.at(key).fail("expected a number >= 0");
}

std::vector<ParameterGroup> groups_of(const OptimizerKeys& keys) {
  std::vector<ParameterGroup> groups;
  if (keys.groups.is_none()) return groups;
  for (const Setting& group : keys.groups.array()) groups.push_back(ParameterGroup::kind().read(group));
  return groups;
}

// The end of each part of a name that is a number or ends in one: of "h.0" and "encoder_layer_3".
std::vector<std::size_t> ends_of_numbers(const std::string& name) {
  std::vector<std::size_t> ends;
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    std::size_t begin = dot;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
    const bool is_number = begin == 0 || name[begin - 1] == '.' || name[begin - 1] == '_';
    if (begin < dot && is_number) ends.push_back(dot);
  }
  return ends;
}

std::string without_number(const std::string& block) {
  return block.substr(0, block.find_last_not_of("0123456789") + 1);
}

}  // namespace

bool matches_pattern(const std::string& pattern, const std::string& name) {
  size_t p = 0, n = 0, after_star = std::string::npos, resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      resume = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (after_star != std::string::npos) {
      p = after_star;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const auto& p) { return matches_pattern(p, name); });
}

OptimizerCommon common_of(const Setting& section) {
  require_not_negative(section, {"lr", "weight_decay"});
  const OptimizerKeys keys = OptimizerKeys::kind().read(section);
  OptimizerCommon common{section.at("lr").number(), section.at("weight_decay").number(), keys.no_decay,
                         groups_of(keys), keys.layer_decay};
  for (const ParameterGroup& group : common.groups)
    if (common.lr == 0.0 && group.lr->value_or(0.0) != 0.0)
      group.lr.fail("the schedule multiplies this rate by the part of optimizer.lr that is left, which is 0");
  return common;
}

void require_matches(const Setting& key, const std::vector<ParamView>& views, bool trained) {
  for (const auto& pattern : key.array())
    if (std::ranges::none_of(views, [&](auto& view) {
          return (view.trained || !trained) && matches_pattern(pattern.text(), view.name);
        }))
      key.fail(std::string("no ") + (trained ? "trained " : "") + "parameter matches " + pattern.text());
}

void require_betas(const Setting& section) {
  if (!section.has("betas")) return;
  const Setting& betas = section.at("betas");
  if (betas.array().size() != 2) betas.fail("expected two numbers");
  for (const double beta : betas.numbers())
    if (!(beta >= 0.0 && beta < 1.0)) betas.fail("expected numbers in [0, 1)");
}

void require_matching_patterns(const Setting& section, const std::vector<ParamView>& views) {
  const OptimizerKeys keys = OptimizerKeys::kind().read(section);
  if (!keys.no_decay->empty()) require_matches(keys.no_decay.key, views);
  for (const ParameterGroup& group : groups_of(keys))
    require_matches(group.match.key, views, /*trained=*/true);
  if (keys.layer_decay != 1.0 && layers_of(views).empty())
    keys.layer_decay.fail("no blocks of the model repeat by number, as \"h.0\" and \"h.1\" would");
}

std::vector<ParameterRates> rates_of(const OptimizerCommon& common, const std::vector<ParamView>& views) {
  std::vector<ParameterRates> rates;
  for (const ParamView& view : views) {
    const auto group = std::ranges::find_if(
        common.groups, [&](const ParameterGroup& one) { return matches_any(one.match, view.name); });
    const ParameterGroup own = (common.own ? common.own(view) : std::nullopt).value_or(ParameterGroup());
    const ParameterGroup given = group == common.groups.end() ? ParameterGroup() : *group;
    const double lr = given.lr->value_or(own.lr->value_or(common.lr));
    const double decay = given.weight_decay->value_or(own.weight_decay->value_or(common.weight_decay));
    ParameterRates& parameter_rates = rates.emplace_back();
    parameter_rates.lr_scale = lr == common.lr || common.lr == 0.0 ? 1.0 : lr / common.lr;
    parameter_rates.weight_decay = matches_any(common.no_decay, view.name) ? 0.0 : decay;
    parameter_rates.group = group == common.groups.end() ? 0 : group - common.groups.begin() + 1;
  }
  if (common.layer_decay == 1.0) return rates;
  const std::vector<std::size_t> layers = layers_of(views);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto to_last = static_cast<double>(*std::ranges::max_element(layers) - layers[i]);
    rates[i].lr_scale *= std::pow(common.layer_decay, to_last);
  }
  return rates;
}

std::vector<std::size_t> layers_of(const std::vector<ParamView>& views) {
  std::map<std::string, std::set<std::string>> blocks_of;  // by the name without its number
  for (const ParamView& view : views)
    for (const std::size_t end : ends_of_numbers(view.name)) {
      const std::string block = view.name.substr(0, end);
      blocks_of[without_number(block)].insert(block);
    }
  std::vector<std::string> blocks;
  std::vector<std::size_t> layers;
  for (const ParamView& view : views) {
    std::string block;
    for (const std::size_t end : ends_of_numbers(view.name))
      if (const std::string name = view.name.substr(0, end);
          block.empty() && blocks_of.at(without_number(name)).size() > 1)
        block = name;
    if (!block.empty() && std::ranges::count(blocks, block) == 0) blocks.push_back(block);
    const auto place = std::ranges::find(blocks, block);
    const std::size_t between = blocks.empty() ? 0 : blocks.size() + 1;
    layers.push_back(block.empty() ? between : place - blocks.begin() + 1);
  }
  if (blocks.empty()) return {};
  return layers;
}

}  // namespace tutti
