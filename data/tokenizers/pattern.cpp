#include "data/tokenizers/pattern.h"

#include <dlfcn.h>
#include <oniguruma.h>

#include <mutex>

#include "data/tokenizers/unicode/code_points.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/process/shared_symbol.h"

namespace tutti {
namespace {

const OnigUChar* bytes_of(const char* text) { return reinterpret_cast<const OnigUChar*>(text); }

constexpr const char* kLibrary = "libonig.so.5";

// The library, opened where a tokenizer needs it and so that it alone sees its symbols: it has functions
// named as POSIX's (regcomp, regexec), which would take the place of those of the C library.
struct Library {
  decltype(&onig_new) make;
  decltype(&onig_free) free;
  decltype(&onig_search) search;
  decltype(&onig_region_new) make_region;
  decltype(&onig_region_free) free_region;
  decltype(&onig_error_code_to_str) text_of_error;
  OnigEncoding utf8;
  OnigSyntaxType* syntax;
  mutable std::mutex mutex;  // regular expressions are made one after another

  Library() {
    void* const file = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (!file)
      throw UserError(
          std::string("a regular expression of a tokenizer needs Oniguruma (Debian: libonig5): ") +
          dlerror());
    const auto find = [file](auto& symbol, const char* name) { find_symbol(file, symbol, name); };
    find(make, "onig_new");
    find(free, "onig_free");
    find(search, "onig_search");
    find(make_region, "onig_region_new");
    find(free_region, "onig_region_free");
    find(text_of_error, "onig_error_code_to_str");
    find(utf8, "OnigEncodingUTF8");
    OnigSyntaxType** usual = nullptr;
    find(usual, "OnigDefaultSyntax");
    syntax = *usual;
    decltype(&onig_initialize) initialize = nullptr;
    find(initialize, "onig_initialize");
    TUTTI_ASSERT(initialize(&utf8, 1) == ONIG_NORMAL, "Oniguruma does not start");
  }
};

const Library& library() {
  static const Library library;
  return library;
}

std::string problem_of(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const auto text_of = library().text_of_error;
  const int length = info ? text_of(text, code, info) : text_of(text, code);
  return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(length)};
}

}  // namespace

Pattern::Pattern(const std::string& expression) {
  const std::lock_guard lock(library().mutex);
  regex_t* regex = nullptr;
  OnigErrorInfo info{};
  const char* text = expression.c_str();
  const int code = library().make(&regex, bytes_of(text), bytes_of(text + expression.size()),
                                  ONIG_OPTION_NONE, library().utf8, library().syntax, &info);
  if (code != ONIG_NORMAL)
    throw UserError("the regular expression '" + shown(expression) + "': " + problem_of(code, &info));
  regex_ = {regex, library().free};
}

Pattern Pattern::literal(const std::string& text) {
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
      library().make_region(), [](OnigRegion* one) { library().free_region(one, 1); });
  const OnigUChar* begin = bytes_of(text.data());
  const OnigUChar* end = begin + text.size();
  const int code =
      library().search(regex_.get(), begin, end, begin + at, end, region.get(), ONIG_OPTION_NONE);
  if (code == ONIG_MISMATCH) return false;
  if (code < 0) throw UserError("a regular expression of a tokenizer fails: " + problem_of(code, nullptr));
  match = {static_cast<std::size_t>(region->beg[0]), static_cast<std::size_t>(region->end[0])};
  return true;
}

bool Pattern::next_match(std::string_view text, Search& search) const {
  Match match;
  while (search.at <= text.size() && match_from(text, search.at, match)) {
    const bool empty_behind_match =
        match.begin == match.end && search.has_match && match.end == search.match.end;
    if (!empty_behind_match) {
      search = {match, match.end, true};
      return true;
    }
    search.at += search.at < text.size() ? code_point_at(text.data() + search.at).bytes : 1;
  }
  return false;
}

}  // namespace tutti
