#include "job/written_split.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "data/readers/options.h"

namespace tutti {
namespace {

constexpr std::array<std::string_view, 5> kDataKeys = {"path", "command", "images", "labels", "list"};
// Keys on how a section goes through its samples, which data of another file need not have.
constexpr std::array<std::string_view, 16> kLoadingKeys = {"batch_size",
                                                           "device_batch_size",
                                                           "shuffle",
                                                           "sampling",
                                                           "on_uneven",
                                                           "drop_last",
                                                           "prefetch",
                                                           "num_workers",
                                                           "transforms",
                                                           "subset_num_batches",
                                                           "train_subset_num_batches",
                                                           "epoch_samples",
                                                           "shuffle_buffer",
                                                           "sampler",
                                                           "sampler_weights",
                                                           "sampler_column"};

template <class Names>
bool is_in(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_number(const Setting* setting) {
  return setting && (setting->is_integer() || std::holds_alternative<double>(setting->value));
}

Setting* member_table(Setting& table, const char* name) {
  Setting* member = table.is_table() ? table.find(name) : nullptr;
  return member && member->is_table() ? member : nullptr;
}

// The key of [data.eval] that names data; null if there is none.
const Setting* own_data(const Setting& eval) {
  for (const auto& [key, value] : eval.table())
    if (is_in(kDataKeys, key) && !value.is_none()) return &value;
  return nullptr;
}

// Data in another file, of the same kind as [data.train].
void take_kind_of_training(Setting& eval, const Setting& train) {
  std::erase_if(eval.table(), [](const auto& member) {
    return member.second.is_none() || member.first.starts_with("split") ||
           (member.first == "kind" && member.second.is_text() && member.second.text() == kSplitKind);
  });
  for (const auto& [key, value] : train.table()) {
    if (is_in(kLoadingKeys, key) || is_in(kDataKeys, key) || eval.find(key)) continue;
    Setting copy = value;
    copy.path = path_below(eval.path, key);
    eval.table().emplace_back(key, std::move(copy));
  }
  const Setting* transforms = train.find("transforms");
  if (!transforms || !transforms->is_array() || eval.find("transforms")) return;
  const std::string path = path_below(eval.path, "transforms");
  Setting suiting = held_out_transforms(*transforms, path);
  if (!suiting.array().empty()) eval.table().emplace_back("transforms", std::move(suiting));
}

void refuse_further_splits(const Setting& written) {
  const Setting* evaluators = written.is_table() ? written.find("evaluators") : nullptr;
  if (!evaluators || !evaluators->is_array()) return;
  for (const Setting& evaluator : evaluators->array())
    if (evaluator.is_table() && is_number(evaluator.find("split")))
      evaluator.find("split")->fail("[data.eval] alone is a share of [data.train]");
}

void require_kind(const Setting& eval, const Setting& split) {
  const Setting* kind = eval.find("kind");
  if (kind && kind->is_text() && kind->text() != kSplitKind)
    kind->fail("the samples of data.eval.split are a share of [data.train]; leave this key out, or split (" +
               split.position.text() + ")");
}

}  // namespace

Setting with_split(Setting written) {
  refuse_further_splits(written);
  Setting* data = member_table(written, "data");
  Setting* train = data ? member_table(*data, "train") : nullptr;
  if (train && is_number(train->find("split")))
    train->find("split")->fail("the share of [data.train] that is held out is data.eval.split, as in 0.1");
  Setting* eval = data ? member_table(*data, "eval") : nullptr;
  if (!eval || !is_number(eval->find("split"))) return written;
  const Setting split = *eval->find("split");
  if (const Setting* own = own_data(*eval)) {
    if (!train || !own->is_override() || split.is_override())
      split.fail("a share of [data.train] excludes " + own->path + " (" + own->position.text() +
                 "); keep one of the two");
    take_kind_of_training(*eval, *train);
    return written;
  }
  require_kind(*eval, split);
  if (!eval->find("kind"))
    eval->table().emplace_back(
        "kind", Setting(std::string(kSplitKind), path_below(eval->path, "kind"), split.position));
  if (const Setting* given = eval->find("split_seed"); given && !given->is_none()) return written;
  std::erase_if(eval->table(), [](const auto& member) { return member.first == "split_seed"; });
  const Setting* seed = written.find("seed");
  const int64_t number = seed && seed->is_integer() ? seed->integer() : 0;
  eval->table().emplace_back("split_seed",
                             Setting(number, path_below(eval->path, "split_seed"), split.position));
  return written;
}

}  // namespace tutti
