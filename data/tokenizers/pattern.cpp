#include "data/tokenizers/pattern.h"

#include <oniguruma.h>

#include <mutex>

#include "data/tokenizers/unicode/code_points.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

const OnigUChar* bytes_of(const char* text) { return reinterpret_cast<const OnigUChar*>(text); }

std::string problem_of(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = info ? onig_error_code_to_str(text, code, info) : onig_error_code_to_str(text, code);
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(length)};
}

// The library's tables are made once; so are its regular expressions, one after another.
std::mutex& library() {
  static std::mutex mutex;
  static const int ready = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1);
  }();
  TUTTI_ASSERT(ready == ONIG_NORMAL, "Oniguruma does not start");
  return mutex;
}

}  // namespace

Pattern::Pattern(const std::string& expression) {
  const std::lock_guard lock(library());
  regex_t* regex = nullptr;
  OnigErrorInfo info{};
  const char* text = expression.c_str();
  const int code = onig_new(&regex, bytes_of(text), bytes_of(text + expression.size()), ONIG_OPTION_NONE,
                            ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL)
    throw UserError("the regular expression '" + shown(expression) + "': " + problem_of(code, &info));
  regex_ = {regex, onig_free};
}

Pattern Pattern::of_text(const std::string& text) {
  static constexpr std::string_view kMeaning = "\\.+*?()|[]{}^$#&-~";
  std::string expression;
  for (const char c : text) {
    if (kMeaning.find(c) != kMeaning.npos) expression += '\\';
    expression += c;
  }
  return Pattern(expression);
}

bool Pattern::match_from(std::string_view text, std::size_t at, Match& match) const {
  const std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region(
      onig_region_new(), [](OnigRegion* one) { onig_region_free(one, 1); });
  const OnigUChar* begin = bytes_of(text.data());
  const OnigUChar* end = begin + text.size();
  const int code = onig_search(regex_.get(), begin, end, begin + at, end, region.get(), ONIG_OPTION_NONE);
  if (code == ONIG_MISMATCH) return false;
  if (code < 0) throw UserError("a regular expression of a tokenizer fails: " + problem_of(code, nullptr));
  match = {static_cast<std::size_t>(region->beg[0]), static_cast<std::size_t>(region->end[0])};
  return true;
}

bool Pattern::next_match(std::string_view text, Search& search) const {
  Match match;
  while (search.at <= text.size() && match_from(text, search.at, match)) {
    const bool empty_behind_match =
        match.begin == match.end && search.has_found && match.end == search.found.end;
    if (!empty_behind_match) {
      search = {match, match.end, true};
      return true;
    }
    search.at += search.at < text.size() ? code_point_at(text.data() + search.at).bytes : 1;
  }
  return false;
}

}  // namespace tutti
