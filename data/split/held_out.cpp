#include "data/split/held_out.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "recipe/wrong_key.h"
#include "runtime/random.h"

namespace tutti {
namespace {

constexpr int64_t kBlocks = 8;

// The samples of each class or group, in their order.
using Members = std::map<int64_t, std::vector<int64_t>>;

Members members_of(const std::vector<int64_t>& kinds) {
  Members members;
  for (std::size_t i = 0; i < kinds.size(); ++i) members[kinds[i]].push_back(static_cast<int64_t>(i));
  return members;
}

int64_t number_of(int64_t samples, double held_out) {
  return held_out < 1 ? std::llround(held_out * static_cast<double>(samples))
                      : static_cast<int64_t>(held_out);
}

int64_t required_number(const SplitRequest& request) {
  const int64_t number = number_of(request.samples, request.held_out);
  const std::string all = std::to_string(request.samples) + " samples";
  if (number < 1) throw WrongKey("split", {}, "of " + all + " that is none");
  if (number >= request.samples)
    throw WrongKey("split", {}, "there are " + all + ", and none is left to train on");
  return number;
}

struct Quota {
  const std::vector<int64_t>* members;
  int64_t number = 0;
  int64_t missing = 0;  // of the class's exact share, in parts of a sample

  int64_t most() const { return std::ssize(*members) - 1; }
};

// Samples to hold out of each class, by largest remainder; equal remainders are drawn. Empty if the classes
// are too small.
std::vector<Quota> quotas_of(const Members& classes, int64_t number, int64_t samples, const RandomKey& key) {
  std::vector<Quota> quotas;
  int64_t sum = 0;
  for (const auto& [name, members] : classes) {
    Quota quota{.members = &members};
    quota.number = std::min(std::ssize(members) * number / samples, quota.most());
    quota.missing = std::ssize(members) * number - quota.number * samples;
    sum += quota.number;
    quotas.push_back(quota);
  }
  const Permutation drawn(quotas.size(), key);
  std::vector<Quota*> order;
  for (std::size_t i = 0; i < quotas.size(); ++i) order.push_back(&quotas[drawn(i)]);
  std::ranges::stable_sort(order, [](const Quota* a, const Quota* b) { return a->missing > b->missing; });
  for (Quota* quota : order)
    if (sum < number && quota->number < quota->most()) ++quota->number, ++sum;
  return sum < number ? std::vector<Quota>() : quotas;
}

// Marks the first `number` members in an order that is drawn.
void draw(const std::vector<int64_t>& members, int64_t number, const RandomKey& key,
          std::vector<bool>& drawn) {
  const Permutation order(members.size(), key);
  for (int64_t i = 0; i < number; ++i)
    drawn[static_cast<std::size_t>(members[order(static_cast<uint64_t>(i))])] = true;
}

void draw_of_classes(const SplitRequest& request, int64_t number, const RandomKey& key,
                     std::vector<bool>& drawn) {
  const Members classes = members_of(request.classes);
  auto quotas = quotas_of(classes, number, request.samples, key.fold_in(0));
  if (!quotas.empty()) {
    for (std::size_t c = 0; c < quotas.size(); ++c)
      draw(*quotas[c].members, quotas[c].number, key.fold_in(c + 1), drawn);
    return;
  }
  const Members all = members_of(std::vector<int64_t>(static_cast<std::size_t>(request.samples)));
  draw(all.at(0), number, key, drawn);
}

void draw_groups(const std::vector<int64_t>& kinds, int64_t number, const RandomKey& key,
                 std::vector<bool>& drawn) {
  const Members groups = members_of(kinds);
  if (groups.size() < 2)
    throw WrongKey("split_by", {}, "all samples have one value, so none can be held out");
  std::vector<const std::vector<int64_t>*> lists;
  for (const auto& [name, members] : groups) lists.push_back(&members);
  const Permutation order(lists.size(), key);
  int64_t sum = 0;
  const auto take = [&](const std::vector<int64_t>& members) {
    for (const int64_t sample : members) drawn[static_cast<std::size_t>(sample)] = true;
    sum += std::ssize(members);
  };
  for (uint64_t i = 0; i < lists.size(); ++i)
    if (const auto& members = *lists[order(i)]; sum + std::ssize(members) <= number) take(members);
  if (sum == 0)
    take(**std::ranges::min_element(lists, {}, [](const auto* members) { return members->size(); }));
}

}  // namespace

std::vector<bool> held_out_samples(const SplitRequest& request) {
  const int64_t number = required_number(request);
  const RandomKey key(request.seed, "held out");
  std::vector<bool> drawn(static_cast<std::size_t>(request.samples));
  if (!request.groups.empty())
    draw_groups(request.groups, number, key, drawn);
  else
    draw_of_classes(request, number, key, drawn);
  return drawn;
}

std::vector<int64_t> samples_marked(const std::vector<bool>& marks, bool held_out) {
  std::vector<int64_t> numbers;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (marks[i] == held_out) numbers.push_back(static_cast<int64_t>(i));
  return numbers;
}

std::vector<int64_t> groups_of_neighbours(int64_t samples, double held_out) {
  const int64_t length = std::max<int64_t>(1, number_of(samples, held_out) / kBlocks);
  std::vector<int64_t> groups(static_cast<std::size_t>(samples));
  for (int64_t i = 0; i < samples; ++i) groups[static_cast<std::size_t>(i)] = i / length;
  return groups;
}

}  // namespace tutti
