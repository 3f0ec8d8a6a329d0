#include "data/tokenizers/template.h"

#include "data/tokenizers/vocabulary.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

uint32_t read_type(const JsonPlace& piece) { return piece.at("type_id").number(0xffffffff); }

constexpr std::size_t kMostIds = std::size_t{1} << 16;  // that a template has around texts

std::vector<uint32_t> read_ids(const JsonPlace& token) {
  std::vector<uint32_t> ids;
  for (const JsonPlace& id : token.at("ids").elements()) ids.push_back(id.number(kMostTokenId));
  return ids;
}

// As ["[SEP]", 102].
std::vector<uint32_t> read_token_and_id(const JsonPlace& place) {
  const std::vector<JsonPlace> pair = place.elements();
  if (pair.size() != 2) place.fail("expected a token and its id");
  return {pair[1].number(kMostTokenId)};
}

}  // namespace

TokenTemplate::TokenTemplate()
    : single_{{.sequence = 0}}, pair_{{.sequence = 0}, {.sequence = 1, .type = 1}} {}

TokenTemplate::TokenTemplate(const JsonPlace& place) : TokenTemplate() { read(place); }

void TokenTemplate::read(const JsonPlace& place) {
  const std::string type =
      place.type({"BertProcessing", "ByteLevel", "RobertaProcessing", "Sequence", "TemplateProcessing"});
  if (type == "ByteLevel") return;
  if (type == "Sequence") {
    for (const JsonPlace& processor : place.at("processors").elements()) read(processor);
    return;
  }
  if (adds_tokens_) place.fail("a second post-processor that adds tokens");
  adds_tokens_ = true;
  type == "TemplateProcessing" ? read_template(place) : read_bert(place, type == "RobertaProcessing");
  find_around(place);
}

void TokenTemplate::read_template(const JsonPlace& place) {
  const JsonPlace special = place.at("special_tokens");
  SpecialTokens tokens;
  for (const auto& [name, token] : special.object().items())
    if (const auto entry = special.find(name)) tokens.emplace(name, read_ids(*entry));
  single_ = read_parts(place.at("single"), tokens);
  pair_ = read_parts(place.at("pair"), tokens);
}

TokenTemplate::Parts TokenTemplate::read_parts(const JsonPlace& place, const SpecialTokens& tokens) {
  Parts parts;
  std::size_t ids = 0;
  for (const JsonPlace& piece : place.elements()) {
    if (const auto sequence = piece.find("Sequence")) {
      const std::string id = sequence->at("id").text();
      if (id != "A" && id != "B") sequence->at("id").fail("expected A or B");
      parts.push_back({.sequence = id == "A" ? 0 : 1, .type = read_type(*sequence)});
    } else {
      const JsonPlace special = piece.at("SpecialToken"), name = special.at("id");
      const auto token = tokens.find(name.text());
      if (token == tokens.end())
        name.fail("'" + shown(name.text()) + "' is not among the special_tokens of the template");
      ids += token->second.size();
      if (ids > kMostIds)
        name.fail("the template has more than " + std::to_string(kMostIds) + " special tokens");
      parts.push_back({.ids = token->second, .type = read_type(special)});
    }
  }
  return parts;
}

// All types of RoBERTa are 0; between its texts stand two separators.
void TokenTemplate::read_bert(const JsonPlace& place, bool roberta) {
  const std::vector<uint32_t> begin = read_token_and_id(place.at("cls")),
                              end = read_token_and_id(place.at("sep"));
  const uint32_t second = roberta ? 0 : 1;
  single_ = {{.ids = begin}, {.sequence = 0}, {.ids = end}};
  pair_ = single_;
  if (roberta) pair_.push_back({.ids = end});
  pair_.push_back({.sequence = 1, .type = second});
  pair_.push_back({.ids = end, .type = second});
}

void TokenTemplate::find_around(const JsonPlace& place) {
  int texts = 0;
  for (const Part& part : single_) {
    texts += part.sequence == 0;
    auto& side = texts == 0 ? around_.before : around_.behind;
    side.insert(side.end(), part.ids.begin(), part.ids.end());
    if (part.sequence == 1) texts = 2;
  }
  if (texts != 1) place.fail("expected the text, A, once in the template of a single text");
}

EncodedPair TokenTemplate::pair(const std::vector<uint32_t>& first, const std::vector<uint32_t>& second,
                                bool special) const {
  EncodedPair encoded;
  for (const Part& part : pair_) {
    if (part.sequence < 0 && !special) continue;
    const auto& ids = part.sequence < 0 ? part.ids : part.sequence == 0 ? first : second;
    encoded.ids.insert(encoded.ids.end(), ids.begin(), ids.end());
    encoded.types.insert(encoded.types.end(), ids.size(), part.type);
  }
  return encoded;
}

}  // namespace tutti
