#include "data/tokenizers/special_ids.h"

#include <filesystem>

#include "data/tokenizers/json_place.h"

namespace tutti {
namespace {

using IdOf = std::function<std::optional<uint32_t>(std::string_view token)>;

std::optional<uint32_t> read_id(const JsonPlace& file, const std::string& member, const IdOf& id_of) {
  const auto token = file.find(member);
  if (!token) return std::nullopt;
  return id_of(token->json().is_object() ? token->at("content").text() : token->text());
}

void read_file(const std::string& path, const IdOf& id_of, SpecialIds& ids) {
  if (!std::filesystem::exists(path)) return;
  const JsonFile file(path);
  const auto set = [&](std::optional<uint32_t>& id, const char* member) {
    if (!id) id = read_id(file.root(), member, id_of);
  };
  set(ids.begin, "bos_token");
  set(ids.end, "eos_token");
  set(ids.pad, "pad_token");
  set(ids.unknown, "unk_token");
  set(ids.mask, "mask_token");
  set(ids.classify, "cls_token");
  set(ids.separate, "sep_token");
}

}  // namespace

SpecialIds read_special_ids(const std::string& tokenizer_path, const IdOf& id_of) {
  const std::filesystem::path folder = std::filesystem::path(tokenizer_path).parent_path();
  SpecialIds ids;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"})
    read_file((folder / name).string(), id_of, ids);
  return ids;
}

}  // namespace tutti
