#include "data/chats/jinja_text.h"

#include <algorithm>
#include <limits>

#include "data/tokenizers/unicode/code_points.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti::jinja {
namespace {

// Python's str.isspace.
bool is_blank(uint32_t character) {
  return unicode().has(character, kWhiteSpace) || (character >= 0x1c && character <= 0x1f);
}

// Texts that came as UTF-8 have whole characters.
MarkedText stripped(const Call& call, bool left, bool right) {
  const MarkedText& text = *call.subject.text();
  const Value* given = call.find(0, "chars");
  const std::string_view chars = text.chars;
  const bool by_chars = given && !given->is_none();
  if (by_chars && !given->text()) refuse("a text", *given);
  const auto goes = [&](CodePoint point, std::string_view bytes) {
    return by_chars ? given->text()->chars.find(bytes) != std::string::npos : is_blank(point.value);
  };
  std::size_t begin = 0, end = chars.size();
  while (left && begin < end) {
    const CodePoint point = code_point_at(chars.data() + begin);
    if (!goes(point, chars.substr(begin, point.bytes))) break;
    begin += point.bytes;
  }
  while (right && end > begin) {
    const CodePoint point = code_point_before(chars, end);
    if (!goes(point, chars.substr(end - point.bytes, point.bytes))) break;
    end -= point.bytes;
  }
  return text.part(begin, end);
}

// The pieces between separators, "": blanks. At most `most` cuts.
List split(const Call& call) {
  const MarkedText& text = *call.subject.text();
  const Value* most_given = call.find(1, "maxsplit");
  int64_t most = std::numeric_limits<int64_t>::max();
  if (most_given && most_given->integer() && *most_given->integer() >= 0) most = *most_given->integer();
  const Value* given = call.find(0, "sep");
  List pieces;
  std::size_t begin = 0;
  if (!given || given->is_none()) {
    if (most_given) throw UserError("split at blanks with a largest number is not known here");
    for (const std::size_t end : characters(text.chars + ' ')) {
      const bool is_end = end > text.chars.size();
      const CodePoint last = is_end ? CodePoint{' ', 1} : code_point_before(text.chars, end);
      if (!is_blank(last.value)) continue;
      if (end - last.bytes > begin) pieces.emplace_back(text.part(begin, end - last.bytes));
      begin = end;
    }
    return pieces;
  }
  const std::string& separator = call.text(0).chars;
  if (separator.empty()) throw UserError("split at an empty text");
  for (std::size_t at = 0; std::ssize(pieces) < most; begin = at + separator.size()) {
    at = text.chars.find(separator, begin);
    if (at == std::string::npos) break;
    pieces.emplace_back(text.part(begin, at));
  }
  pieces.emplace_back(text.part(begin, text.chars.size()));
  return pieces;
}

MarkedText replaced(const Call& call) {
  const MarkedText& text = *call.subject.text();
  const std::string& from = call.text(0).chars;
  const MarkedText& to = call.text(1);
  if (from.empty() || call.find(2, "count"))
    throw UserError("replace of nothing, or of some, is not known here");
  MarkedText out;
  std::size_t begin = 0;
  for (std::size_t at = text.chars.find(from); at != std::string::npos; at = text.chars.find(from, begin)) {
    call.work.use(to.chars.size() + at - begin);
    out.add(text.part(begin, at));
    out.add(to);
    begin = at + from.size();
  }
  out.add(text.part(begin, text.chars.size()));
  return out;
}

bool begins_or_ends(const Call& call) {
  const std::string& chars = call.subject.text()->chars;
  const Value& given = call.at(0);
  const auto holds = [&](const Value& element) {
    if (!element.text()) refuse("a text", element);
    return call.name == "startswith" ? chars.starts_with(element.text()->chars)
                                     : chars.ends_with(element.text()->chars);
  };
  return given.list() ? std::ranges::any_of(*given.list(), holds) : holds(given);
}

// Of ASCII alone: other letters have cases of their own in Python.
MarkedText in_case(const Call& call, bool upper, bool first_upper) {
  MarkedText text = *call.subject.text();
  for (std::size_t i = 0; i < text.chars.size(); ++i) {
    char& c = text.chars[i];
    if (static_cast<unsigned char>(c) >= 0x80)
      throw UserError("'" + shown(call.name) + "' of letters beyond ASCII is not known here");
    const bool up = upper || (first_upper && i == 0);
    if (up && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!up && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

Value text_method(const Call& call) {
  if (!call.subject.text()) refuse("a text", call.subject);
  const std::string& name = call.name;
  call.work.use(call.subject.text()->chars.size());
  if (name == "strip") return stripped(call, true, true);
  if (name == "lstrip") return stripped(call, true, false);
  if (name == "rstrip") return stripped(call, false, true);
  if (name == "split") return split(call);
  if (name == "replace") return replaced(call);
  if (name == "startswith" || name == "endswith") return begins_or_ends(call);
  if (name == "upper" || name == "lower") return in_case(call, name == "upper", false);
  if (name == "capitalize") return in_case(call, false, true);
  if (name == "find") {
    const std::string& chars = call.subject.text()->chars;
    const std::size_t at = chars.find(call.text(0).chars);
    return at == std::string::npos ? int64_t{-1} : std::ssize(characters(chars.substr(0, at)));
  }
  throw UserError("the method '" + shown(name) + "' of a text is not known here");
}

std::vector<std::size_t> characters(std::string_view chars) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < chars.size();) ends.push_back(at += code_point_at(chars.data() + at).bytes);
  return ends;
}

}  // namespace tutti::jinja
