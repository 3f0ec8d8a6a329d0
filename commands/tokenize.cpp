#include "commands/tokenize.h"

#include "data/readers/make_dataset.h"
#include "data/texts/tokenized_texts.h"
#include "recipe/setting.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti {
namespace {

Setting section_of(const TokenizeOptions& options) {
  Setting::Table keys;
  const auto add = [&keys](const std::string& key, const Setting::Value& value) {
    keys.emplace_back(key, Setting(value, key, Position{"command line"}));
  };
  add("path", options.texts);
  add("tokenizer", options.tokenizer);
  add("add_bos_token", options.add_bos_token);
  if (!options.add_eos_token) add("add_eos_token", false);
  for (const auto& [key, value] : options.keys) add(key, value);
  return Setting(keys, "", Position{"command line"});
}

}  // namespace

std::string tokenize_texts(const TokenizeOptions& options) try {
  Tokenization how = tokenization_of(section_of(options));
  how.skip_bad = options.skip_bad;
  tokenize(how, options.to);
  const TokenizedTexts made(options.to);
  return options.to + ".bin, " + options.to + ".idx: " + grouped(made.documents().size()) + " documents, " +
         grouped(made.tokens().tokens()) + " tokens, " + token_type_name(made.tokens().format()) + '\n' +
         (made.left_out().empty() ? "" : made.left_out() + '\n');
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace tutti
