#include "data/tokenizers/text_pattern.h"

#include "runtime/error.h"

namespace tutti {

TextPattern::TextPattern(const JsonPlace& place) {
  if (const auto text = place.find("String")) {
    text_ = text->text();
    if (text_.empty()) pattern_ = Pattern("");
    return;
  }
  const JsonPlace regex = place.at("Regex");
  scanner_ = scanner_of(regex.text());
  if (!scanner_) try {
      pattern_ = Pattern(regex.text());
    } catch (const UserError& error) {
      regex.fail(error.message());
    }
}

}  // namespace tutti
