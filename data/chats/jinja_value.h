#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tutti::jinja {

// Whose words a byte of a text is: the template's, an assistant's, or of any other message.
inline constexpr char kTemplates = 0, kAssistants = 1, kOthers = 2;

// A text whose bytes know their origin, also in parts of the text.
struct MarkedText {
  std::string chars;
  std::string marks = "";  // of each byte; "": all are the template's

  void add(const MarkedText& more);
  MarkedText part(std::size_t begin, std::size_t end) const;  // bytes
  char mark(std::size_t byte) const { return marks.empty() ? kTemplates : marks[byte]; }
};

class Value;
using List = std::vector<Value>;
using Map = std::vector<std::pair<std::string, Value>>;  // in order
struct Undefined {
  std::string name;
};
using Text = std::shared_ptr<const MarkedText>;
using ListPtr = std::shared_ptr<const List>;
using MapPtr = std::shared_ptr<Map>;  // namespaces change

// A value of Jinja, with Python's meaning.
class Value : public std::variant<Undefined, std::nullptr_t, bool, int64_t, double, Text, ListPtr, MapPtr> {
 public:
  using variant::variant;
  Value(MarkedText text) : variant(std::make_shared<const MarkedText>(std::move(text))) {}
  Value(List list) : variant(std::make_shared<const List>(std::move(list))) {}
  Value(Map map) : variant(std::make_shared<Map>(std::move(map))) {}
  static Value text(std::string_view chars) { return MarkedText{std::string(chars)}; }

  bool is_undefined() const { return std::holds_alternative<Undefined>(*this); }
  bool is_none() const { return std::holds_alternative<std::nullptr_t>(*this); }
  // Null if the value is of another type.
  const MarkedText* text() const;
  const List* list() const;
  Map* map() const;
  const int64_t* integer() const { return std::get_if<int64_t>(this); }
  const Value* member(std::string_view key) const;  // of a map; null where there is none

  bool is_true() const;
  const char* type() const;  // "a text"
};

bool operator==(const Value& left, const Value& right);

// As Python's str(). Throws UserError for lists and maps.
MarkedText written(const Value& value);

// As json.dumps(value, ensure_ascii=is_ascii); `indent` below 0: on one line. Throws UserError for what JSON
// lacks.
MarkedText as_json(const Value& value, int indent = -1, bool is_ascii = false);

// The rest of a rendering's allowance: steps, and bytes of new texts.
struct Work {
  int64_t left = 0;
  void use(std::size_t amount);  // throws UserError when nothing is left
};

// A value that a function, filter, test or method is asked about, and its arguments.
struct Call {
  const std::string& name;
  const Value& subject;  // of a function: undefined
  const List& arguments;
  const Map& keywords;
  Work& work;

  const Value* find(std::size_t place, std::string_view keyword) const;  // null: not given
  const Value& at(std::size_t place, std::string_view keyword = "") const;
  const MarkedText& text(std::size_t place) const;  // of a text
};

[[noreturn]] void refuse(const std::string& what, const Value& value);  // UserError

}  // namespace tutti::jinja
