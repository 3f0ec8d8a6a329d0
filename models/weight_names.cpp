#include "models/weight_names.h"

#include <fnmatch.h>

#include <algorithm>
#include <string_view>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::string_view kInnerWrappers[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                               "_checkpoint_wrapped_module."};
constexpr std::string_view kOuterWrappers[] = {"module.", "model."};
constexpr std::string_view kTrunks[] = {"transformer.", "bert.", "model."};

struct Names {
  std::string_view other, own;
};
constexpr Names kLayerNorm[] = {{".gamma", ".weight"}, {".beta", ".bias"}};
constexpr Names kDecoder = {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"};
constexpr Names kTied[] = {{"lm_head.weight", "transformer.wte.weight"},
                           {"lm_head.weight", "model.embed_tokens.weight"},
                           kDecoder,
                           {"cls.predictions.decoder.bias", "cls.predictions.bias"}};

void add(std::vector<std::string>& names, std::string name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

std::string without_wrappers(std::string name) {
  for (const std::string_view wrapper : kInnerWrappers)
    for (std::size_t at = name.find(wrapper); at != name.npos; at = name.find(wrapper, at))
      if (at == 0 || name[at - 1] == '.')
        name.erase(at, wrapper.size());
      else
        at += wrapper.size();
  for (bool removed = true; removed;) {
    removed = false;
    for (const std::string_view wrapper : kOuterWrappers)
      if (name.starts_with(wrapper)) {
        name.erase(0, wrapper.size());
        removed = true;
      }
  }
  return name;
}

std::string with_end(const std::string& name, const Names& ends) {
  return name.ends_with(ends.other) ? name.substr(0, name.size() - ends.other.size()) + std::string(ends.own)
                                    : name;
}

std::vector<std::string> split(const std::string& pattern) {
  std::vector<std::string> parts(1);
  for (const char c : pattern)
    if (c == '*')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

}  // namespace

std::vector<std::string> names_in_models(const std::string& name) {
  std::vector<std::string> names{name};
  add(names, without_wrappers(name));
  for (std::size_t i = 0, count = names.size(); i < count; ++i)
    for (const Names& ends : kLayerNorm) add(names, with_end(names[i], ends));
  for (std::size_t i = 0, count = names.size(); i < count; ++i)
    for (const std::string_view trunk : kTrunks)
      add(names, names[i].starts_with(trunk) ? names[i].substr(trunk.size()) : std::string(trunk) + names[i]);
  for (std::size_t i = 0, count = names.size(); i < count; ++i)
    for (const Names& tied : kTied)
      if (names[i] == tied.other) add(names, std::string(tied.own));
  return names;
}

bool is_tied_weight(const std::string& name) {
  const std::string own = without_wrappers(name);
  return std::ranges::any_of(kTied, [&](const Names& tied) { return own == tied.other; });
}

std::string copied_from(const std::string& name) {
  return name == kDecoder.other ? std::string(kDecoder.own) : "";
}

bool is_saved_constant(const std::string& name) {
  constexpr const char* kPatterns[] = {"*.attn.bias", "*.attn.masked_bias", "*.rotary_emb.inv_freq",
                                       "*position_ids", "*embeddings.token_type_ids"};
  return std::ranges::any_of(kPatterns,
                             [&](const char* pattern) { return fnmatch(pattern, name.c_str(), 0) == 0; });
}

bool is_batch_count(const std::string& name) { return name.ends_with("num_batches_tracked"); }

NamePattern::NamePattern(const std::string& pattern, const std::string& renamed)
    : text_(pattern), parts_(split(pattern)), renamed_(split(renamed)) {
  if (renamed_.size() > parts_.size())
    throw UserError("'" + renamed + "' has more '*' than '" + pattern + "', which they are the texts of");
}

std::string NamePattern::renamed(const std::string& name) const {
  const std::string& last = parts_.back();
  if (parts_.size() == 1) return name == last ? renamed_[0] : "";
  if (!name.starts_with(parts_[0])) return "";
  std::string result = renamed_[0];
  std::size_t at = parts_[0].size();
  for (std::size_t i = 1; i < parts_.size(); ++i) {
    const bool is_last = i + 1 == parts_.size();
    const std::size_t place = is_last ? name.size() - last.size() : name.find(parts_[i], at);
    if (place > name.size() || place < at || (is_last && !name.ends_with(last))) return "";
    if (i < renamed_.size()) result += name.substr(at, place - at) + renamed_[i];
    at = place + parts_[i].size();
  }
  return result;
}

}  // namespace tutti
