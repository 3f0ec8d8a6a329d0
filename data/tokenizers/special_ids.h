#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

// Ids of tokens that training and generation ask for by their part in a text.
struct SpecialIds {
  std::optional<uint32_t> begin, end, pad, unknown, mask, classify, separate;
  std::vector<uint32_t> all;  // all ids that are no text, in order
};

// Reads the members bos_token, eos_token, pad_token, unk_token, mask_token, cls_token and sep_token of
// tokenizer_config.json, and of special_tokens_map.json where the former has none, in the folder of a
// tokenizer.json. Each is a text or an object with "content". Nullopt where there is no such file or member,
// or id_of(token) has none. `all` has `marked` too, and the tokens of additional_special_tokens and
// extra_special_tokens. Throws UserError if a file is damaged.
SpecialIds read_special_ids(const std::string& tokenizer_path,
                            const std::function<std::optional<uint32_t>(std::string_view token)>& id_of,
                            std::vector<uint32_t> marked);

}  // namespace tutti
