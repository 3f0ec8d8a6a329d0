#include "sharding/units.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/probe/probe.h"
#include "training/optimizers/optimizer.h"

namespace tutti {
namespace {

constexpr const char* kRootUnit = "model";
constexpr double kMib = 1 << 20;
constexpr std::string_view kContainer = "Sequential";

bool is_wanted(const std::string& pattern, const Slot& slot, const std::string& name) {
  return pattern == slot.layer().kind() || matches_pattern(pattern, name);
}

bool is_any(const std::vector<std::string>& patterns, const Slot& slot, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& one) { return is_wanted(one, slot, name); });
}

std::string name_below(const std::string& path, const Slot& slot) {
  return path.empty() ? slot.name() : path + "." + slot.name();
}

void add_outermost(const Layer& layer, const std::string& path, const std::vector<std::string>& patterns,
                   std::vector<NamedSlot>& chosen) {
  for (const auto& slot : layer.slots()) {
    if (slot->empty()) continue;
    const std::string name = name_below(path, *slot);
    if (is_any(patterns, *slot, name))
      chosen.push_back({name, slot.get()});
    else
      add_outermost(slot->layer(), name, patterns, chosen);
  }
}

double parameter_bytes(Layer& root) {
  double bytes = 0;
  for (const auto& named : parameters(root)) bytes += static_cast<double>(named.parameter->tensor.nbytes());
  return bytes;
}

// Chooses the slots of units.
class Chooser {
 public:
  explicit Chooser(const ShardingSettings& settings)
      : names_(settings.units), bytes_(settings.unit_mb * kMib) {}

  void look_into(const Layer& layer, const std::string& path) {
    std::map<std::string_view, int> kinds;
    for (const auto& slot : layer.slots())
      if (!slot->empty()) ++kinds[slot->layer().kind()];
    for (const auto& slot : layer.slots()) {
      if (slot->empty() || parameters(slot->layer()).empty()) continue;
      const std::string name = name_below(path, *slot);
      const auto before = chosen.size();
      const bool outermost = takes(*slot, name, kinds.at(slot->layer().kind()) > 1);
      if (!outermost) look_into(slot->layer(), name);
      const bool smallest = bytes_ > 0 && chosen.size() == before && parameter_bytes(slot->layer()) >= bytes_;
      if (outermost || smallest) chosen.push_back({name, slot.get()});
    }
  }

  std::vector<NamedSlot> chosen;

 private:
  bool takes(const Slot& slot, const std::string& name, bool repeats) const {
    if (bytes_ > 0) return false;
    if (names_.empty()) return repeats && slot.layer().kind() != kContainer;
    return is_any(names_, slot, name);
  }

  const std::vector<std::string>& names_;
  const double bytes_;
};

// The unit of each layer; 0: the root unit.
using UnitOfLayer = std::unordered_map<const Layer*, std::size_t>;

void leave_to_root(Layer& layer, UnitOfLayer& units) {
  for (const auto& [name, below] : layers(layer)) units[below] = 0;
}

// Layers that stand in several slots.
std::vector<Layer*> shared_layers(Layer& root) {
  std::unordered_map<Layer*, int> slots_of;
  for (const auto& named : slots(root))
    if (!named.slot->empty()) ++slots_of[&named.slot->layer()];
  std::vector<Layer*> shared;
  for (const auto& [layer, count] : slots_of)
    if (count > 1) shared.push_back(layer);
  return shared;
}

UnitOfLayer units_of_layers(Layer& root, const std::vector<NamedSlot>& chosen) {
  UnitOfLayer units;
  for (std::size_t u = 0; u < chosen.size(); ++u)
    for (const auto& [name, layer] : layers(chosen[u].slot->layer())) units[layer] = u + 1;
  for (Layer* shared : shared_layers(root)) leave_to_root(*shared, units);
  for (const auto& [name, reader] : layers(root))
    for (Layer* read : reader->reads())
      if (units[read] != units[reader]) {
        TUTTI_PROBE("sharding: a layer that another unit reads is left to the root unit");
        leave_to_root(*read, units);
      }
  return units;
}

std::vector<NamedSlot> in_order_of_calls(std::vector<NamedSlot> slots, const std::function<void()>& run) {
  std::vector<std::size_t> calls;
  std::vector<Slot::Hook> hooks;
  for (std::size_t s = 0; s < slots.size(); ++s)
    hooks.push_back(slots[s].slot->before([&calls, s](const TensorTree&) { calls.push_back(s); }));
  try {
    run();
  } catch (const std::exception&) {
    return slots;
  }
  std::vector<NamedSlot> ordered;
  for (const std::size_t s : calls)
    if (std::ranges::count(calls, s) == 1) ordered.push_back(slots[s]);
  return ordered;
}

}  // namespace

std::vector<Unit> find_units(Layer& root, const ShardingSettings& settings,
                             const std::function<void()>& run) {
  Chooser chooser(settings);
  chooser.look_into(root, "");
  if (run) chooser.chosen = in_order_of_calls(std::move(chooser.chosen), run);
  std::vector<Unit> units{{kRootUnit, nullptr, {}}};
  for (const NamedSlot& named : chooser.chosen) units.push_back({named.name, named.slot, {}});

  UnitOfLayer unit_of_layer = units_of_layers(root, chooser.chosen);
  std::unordered_map<const Parameter*, std::size_t> unit_of;
  for (const auto& [name, layer] : layers(root))
    for (const auto& own : layer->own_parameters()) {
      const std::size_t unit = unit_of_layer[layer];
      const auto [unit_place, fresh] = unit_of.emplace(own.get(), unit);
      if (!fresh && unit_place->second != unit) unit_place->second = 0;
    }
  const auto all = parameters(root);
  for (std::size_t p = 0; p < all.size(); ++p)
    units[unit_of.at(all[p].parameter.get())].parameters.push_back(p);
  std::erase_if(units, [](const Unit& unit) { return unit.slot && unit.parameters.empty(); });
  return units;
}

std::vector<NamedSlot> find_checkpointed(Layer& root, const ShardingSettings& settings) {
  std::vector<NamedSlot> chosen;
  if (!settings.checkpoint_layers.empty()) {
    add_outermost(root, "", settings.checkpoint_layers, chosen);
  } else if (settings.checkpoint_every > 0) {
    Chooser chooser(settings);
    chooser.look_into(root, "");
    const auto every = static_cast<std::size_t>(settings.checkpoint_every);
    for (std::size_t s = every - 1; s < chooser.chosen.size(); s += every)
      chosen.push_back(chooser.chosen[s]);
  }
  return chosen;
}

std::vector<std::string> unmatched_units(Layer& root, const std::vector<std::string>& patterns) {
  std::vector<std::string> unmatched;
  const auto all = slots(root);
  for (const std::string& pattern : patterns)
    if (std::ranges::none_of(all, [&](const NamedSlot& named) {
          return !named.slot->empty() && is_wanted(pattern, *named.slot, named.name);
        }))
      unmatched.push_back(pattern);
  return unmatched;
}

}  // namespace tutti
