#include "sim/simulate/shrink.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "recipe/toml_reader.h"

namespace tutti {
namespace {

// Texts of findings differ in numbers and names; their beginning is that of the invariant.
std::string kind_of(const std::string& finding) {
  constexpr std::size_t kBegin = 40;
  std::string kind;
  for (const char c : finding)
    if (!std::isdigit(static_cast<unsigned char>(c)) && kind.size() < kBegin) kind += c;
  return kind;
}

using Cases = std::vector<FailingCase>;

void add_fewer_ranks(const FailingCase& failing, Cases& smaller) {
  for (int ranks = 1; ranks < failing.ranks; ++ranks) {
    smaller.push_back(failing);
    smaller.back().ranks = ranks;
  }
}

// With faults in the first attempt alone.
void add_fewer_starts(const FailingCase& failing, Cases& smaller) {
  if (!failing.plan.is_table()) return;
  FailingCase other = failing;
  Setting* starts = other.plan.find("starts");
  if (starts && starts->is_integer() && starts->integer() == 1) return;
  if (starts)
    starts->value = int64_t{1};
  else
    other.plan.table().insert(other.plan.table().begin(),
                              {"starts", Setting(int64_t{1}, "starts", other.plan.position)});
  smaller.push_back(std::move(other));
}

// Without each item of a list of tables; the list without items is left out.
void add_shorter_lists(const FailingCase& failing, Setting FailingCase::*table, const std::string& name,
                       Cases& smaller) {
  const Setting* list = (failing.*table).is_table() ? (failing.*table).find(name) : nullptr;
  if (!list || !list->is_array()) return;
  const std::size_t count = list->array().size();
  const auto without = [&](std::size_t first, std::size_t last) {
    FailingCase shorter = failing;
    auto& items = std::get<Setting::Array>((shorter.*table).find(name)->value);
    items.erase(items.begin() + static_cast<int64_t>(first), items.begin() + static_cast<int64_t>(last));
    if (items.empty())
      std::erase_if((shorter.*table).table(), [&](const auto& member) { return member.first == name; });
    smaller.push_back(std::move(shorter));
  };
  if (count > 1) without(0, count), without(0, count / 2), without(count / 2, count);
  for (std::size_t i = 0; i < count; ++i) without(i, i + 1);
}

// With the first number of a duration halved: "10ba", "5ba".
void add_shorter_training(const FailingCase& failing, Cases& smaller) {
  FailingCase shorter = failing;
  Setting* train = shorter.recipe.find("train");
  Setting* duration = train && train->is_table() ? train->find("max_duration") : nullptr;
  if (!duration || !duration->is_text()) return;
  const std::string text = duration->text();
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits > 9) return;
  const int64_t length = std::stoll(text.substr(0, digits));
  for (const int64_t other : {length / 2, length - 1}) {
    if (other < 1 || other >= length) continue;
    duration->value = std::to_string(other) + (digits == text.npos ? "" : text.substr(digits));
    smaller.push_back(shorter);
  }
}

void add_smallest_model(const FailingCase& failing, Cases& smaller) {
  const Setting* model = failing.recipe.find("model");
  if (!model || !model->is_table() || (model->has("kind") && model->at("kind").toml() == "\"mlp\"")) return;
  const Setting small = parse_recipe(
      "[model]\nkind = 'mlp'\nhidden = [4]\n[data.train]\nkind = 'synthetic'\nsamples = 24\nshape = [4]\n"
      "batch_size = 12\n",
      "small");
  FailingCase other = failing;
  for (const char* section : {"model", "data"})
    if (Setting* own = other.recipe.find(section)) *own = small.at(section);
  smaller.push_back(std::move(other));
}

constexpr const char* kDuration = "train.max_duration";

// The defaults of these sections are for real trainings: a model of 200 million parameters, 256 tokens a
// sample.
bool has_large_defaults(const std::string& path) { return path == "model" || path.starts_with("data."); }

// Without each key, the sections first; what a recipe must have is refused, and so not left out.
void add_fewer_keys(const FailingCase& failing, const std::string& path, const Setting& table,
                    Cases& smaller) {
  const auto table_at = [&path](FailingCase& other) -> Setting& {
    Setting* at = &other.recipe;
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t dot = std::min(path.find('.', begin), path.size());
      at = at->find(path.substr(begin, dot - begin));
      begin = dot + 1;
    }
    return *at;
  };
  for (const auto& [name, value] : table.table()) {
    if (path_below(path, name) == kDuration) continue;  // the default may be longer
    FailingCase shorter = failing;
    std::erase_if(table_at(shorter).table(), [&](const auto& member) { return member.first == name; });
    smaller.push_back(std::move(shorter));
  }
  for (const auto& [name, value] : table.table())
    if (value.is_table() && !has_large_defaults(path_below(path, name)))
      add_fewer_keys(failing, path_below(path, name), value, smaller);
}

// What is cheapest to simulate first.
Cases smaller_cases(const FailingCase& failing) {
  Cases smaller;
  add_fewer_ranks(failing, smaller);
  add_shorter_lists(failing, &FailingCase::plan, "fault", smaller);
  add_fewer_starts(failing, smaller);
  add_smallest_model(failing, smaller);
  for (const char* list : {"algorithms", "callbacks", "loggers"})
    add_shorter_lists(failing, &FailingCase::recipe, list, smaller);
  add_shorter_training(failing, smaller);
  add_fewer_keys(failing, "", failing.recipe, smaller);
  return smaller;
}

}  // namespace

FailingCase shrink(FailingCase failing, const FindViolation& find, int most_tries,
                   const std::function<void(const FailingCase&, int)>& on_smaller) {
  const std::string kind = kind_of(failing.finding);
  int tries = 0;
  for (bool again = true; again;) {
    again = false;
    for (std::size_t next = 0;;) {
      Cases smaller = smaller_cases(failing);
      if (next >= smaller.size()) break;
      if (++tries > most_tries) return failing;
      const auto finding = find(smaller[next]);
      if (!finding || kind_of(finding->finding) != kind) {
        ++next;
        continue;
      }
      failing = std::move(smaller[next]);
      failing.seed = finding->seed;
      failing.finding = finding->finding;
      again = true;
      if (on_smaller) on_smaller(failing, tries);
    }
  }
  return failing;
}

Setting with_absolute_paths(Setting written, const Setting& resolved) {
  if (!resolved.written.empty() && written.is_text()) {
    written.value = resolved.value;
  } else if (written.is_table() && resolved.is_table()) {
    for (auto& [name, member] : written.table())
      if (const Setting* meaning = resolved.find(name))
        member = with_absolute_paths(std::move(member), *meaning);
  } else if (written.is_array() && resolved.is_array()) {
    auto& items = std::get<Setting::Array>(written.value);
    for (std::size_t i = 0; i < std::min(items.size(), resolved.array().size()); ++i)
      items[i] = with_absolute_paths(std::move(items[i]), resolved.array()[i]);
  }
  return written;
}

}  // namespace tutti
