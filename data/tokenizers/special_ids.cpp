#include "data/tokenizers/special_ids.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "data/tokenizers/json_place.h"

namespace tutti {
namespace {

using IdOf = std::function<std::optional<uint32_t>(std::string_view token)>;

std::optional<uint32_t> id_at(const JsonPlace& token, const IdOf& id_of) {
  return id_of(token.json().is_object() ? token.at("content").text() : token.text());
}

// Of a list of tokens, or of an object that names them.
void add_more(const JsonPlace& tokens, const IdOf& id_of, std::vector<uint32_t>& all) {
  const auto add = [&](const JsonPlace& token) {
    if (const auto id = id_at(token, id_of)) all.push_back(*id);
  };
  if (!tokens.json().is_object())
    for (const JsonPlace& token : tokens.elements()) add(token);
  else
    for (const auto& [name, _] : tokens.json().items()) add(tokens.at(name));
}

void read_file(const std::string& path, const IdOf& id_of, SpecialIds& ids) {
  if (!std::filesystem::exists(path)) return;
  const JsonFile file(path);
  const auto set = [&](std::optional<uint32_t>& id, const char* member) {
    const auto token = file.root().find(member);
    if (!id && token) id = id_at(*token, id_of);
  };
  set(ids.begin, "bos_token");
  set(ids.end, "eos_token");
  set(ids.pad, "pad_token");
  set(ids.unknown, "unk_token");
  set(ids.mask, "mask_token");
  set(ids.classify, "cls_token");
  set(ids.separate, "sep_token");
  for (const char* list : {"additional_special_tokens", "extra_special_tokens"})
    if (const auto tokens = file.root().find(list)) add_more(*tokens, id_of, ids.all);
}

}  // namespace

SpecialIds read_special_ids(const std::string& tokenizer_path, const IdOf& id_of,
                            std::vector<uint32_t> marked) {
  const std::filesystem::path folder = std::filesystem::path(tokenizer_path).parent_path();
  SpecialIds ids;
  ids.all = std::move(marked);
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"})
    read_file((folder / name).string(), id_of, ids);
  for (const auto& id : {ids.begin, ids.end, ids.pad, ids.unknown, ids.mask, ids.classify, ids.separate})
    if (id) ids.all.push_back(*id);
  std::ranges::sort(ids.all);
  const auto repeated = std::ranges::unique(ids.all);
  ids.all.erase(repeated.begin(), repeated.end());
  return ids;
}

}  // namespace tutti
