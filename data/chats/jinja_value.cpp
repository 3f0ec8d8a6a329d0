#include "data/chats/jinja_value.h"

#include <charconv>
#include <cmath>

#include "io/json/json_text.h"
#include "runtime/error.h"
#include "runtime/text.h"

namespace tutti::jinja {
namespace {

std::string float_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// Writes JSON; what is made of marked texts is marked as a whole.
class JsonWriter {
 public:
  JsonWriter(int indent, bool is_ascii) : indent_(indent), is_ascii_(is_ascii) {}

  void write(const Value& value, int depth) {
    if (const MarkedText* text = value.text()) {
      out_ += quoted(text->chars);
      for (std::size_t i = 0; i < text->marks.size(); ++i)
        if (text->marks[i] != kTemplates) mark_ = text->marks[i];
    } else if (const List* list = value.list()) {
      write_all(*list, "[]", depth, [&](const Value& one) { write(one, depth + 1); });
    } else if (const Map* map = value.map()) {
      write_all(*map, "{}", depth, [&](const auto& member) {
        out_ += quoted(member.first) + ": ";
        write(member.second, depth + 1);
      });
    } else if (value.is_none()) {
      out_ += "null";
    } else if (const bool* truth = std::get_if<bool>(&value)) {
      out_ += *truth ? "true" : "false";
    } else if (value.is_undefined()) {
      throw UserError("tojson of what is undefined");
    } else {
      out_ += written(value).chars;
    }
  }

  MarkedText finish() {
    std::string marks(mark_ == kTemplates ? 0 : out_.size(), mark_);
    return {std::move(out_), std::move(marks)};
  }

 private:
  template <class All, class Write>
  void write_all(const All& all, const char* brackets, int depth, const Write& write_one) {
    const auto line = [&](int at) {
      if (indent_ >= 0 && !all.empty())
        out_ += '\n' + std::string(static_cast<std::size_t>(at * indent_), ' ');
    };
    out_ += brackets[0];
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i > 0) out_ += indent_ >= 0 ? "," : ", ";
      line(depth + 1);
      write_one(all[i]);
    }
    line(depth);
    out_ += brackets[1];
  }

  std::string quoted(const std::string& chars) const {
    return nlohmann::json(chars).dump(-1, ' ', is_ascii_, nlohmann::json::error_handler_t::replace);
  }

  int indent_;
  bool is_ascii_;
  std::string out_;
  char mark_ = kTemplates;
};

// Python's numbers, of which True and False are two; nullptr for another type.
const double* as_number(const Value& value, double& scratch) {
  if (const bool* truth = std::get_if<bool>(&value)) return scratch = *truth ? 1 : 0, &scratch;
  if (const int64_t* number = value.integer()) return scratch = static_cast<double>(*number), &scratch;
  return std::get_if<double>(&value);
}

}  // namespace

void MarkedText::add(const MarkedText& more) {
  if (!marks.empty() || !more.marks.empty()) {
    marks.resize(chars.size(), kTemplates);
    marks += more.marks;
    marks.resize(chars.size() + more.chars.size(), kTemplates);
  }
  chars += more.chars;
}

MarkedText MarkedText::part(std::size_t begin, std::size_t end) const {
  if (begin >= end) return {};
  return {chars.substr(begin, end - begin), marks.empty() ? "" : marks.substr(begin, end - begin)};
}

const MarkedText* Value::text() const {
  const auto* text = std::get_if<Text>(this);
  return text ? text->get() : nullptr;
}

const List* Value::list() const {
  const auto* list = std::get_if<ListPtr>(this);
  return list ? list->get() : nullptr;
}

Map* Value::map() const {
  const auto* map = std::get_if<MapPtr>(this);
  return map ? map->get() : nullptr;
}

const Value* Value::member(std::string_view key) const {
  if (const Map* all = map())
    for (const auto& [name, value] : *all)
      if (name == key) return &value;
  return nullptr;
}

bool Value::is_true() const {
  if (const bool* truth = std::get_if<bool>(this)) return *truth;
  double scratch = 0;
  if (const double* number = as_number(*this, scratch)) return *number != 0;
  return (text() && !text()->chars.empty()) || (list() && !list()->empty()) || (map() && !map()->empty());
}

const char* Value::type() const {
  constexpr const char* kNames[] = {"undefined", "none",   "true or false", "a whole number",
                                    "a number",  "a text", "a list",        "a map"};
  return kNames[index()];
}

bool operator==(const Value& left, const Value& right) {
  double scratch[2];
  const double* numbers[] = {as_number(left, scratch[0]), as_number(right, scratch[1])};
  if (numbers[0] && numbers[1]) return *numbers[0] == *numbers[1];
  if (left.text() && right.text()) return left.text()->chars == right.text()->chars;
  if (left.list() && right.list()) return *left.list() == *right.list();
  if (left.map() && right.map()) {
    if (left.map()->size() != right.map()->size()) return false;
    for (const auto& [key, value] : *left.map())
      if (const Value* other = right.member(key); !other || !(*other == value)) return false;
    return true;
  }
  return left.index() == right.index() && (left.is_none() || left.is_undefined());
}

MarkedText written(const Value& value) {
  if (const MarkedText* text = value.text()) return *text;
  if (value.is_undefined()) return {};
  if (value.is_none()) return {"None"};
  if (const bool* truth = std::get_if<bool>(&value)) return {*truth ? "True" : "False"};
  if (const int64_t* number = value.integer()) return {std::to_string(*number)};
  if (const double* number = std::get_if<double>(&value)) return {float_text(*number)};
  throw UserError(std::string(value.type()) + " is written as a text, which is not known here");
}

MarkedText as_json(const Value& value, int indent, bool is_ascii) {
  JsonWriter writer(indent, is_ascii);
  writer.write(value, 0);
  return writer.finish();
}

void Work::use(std::size_t amount) {
  left -= static_cast<int64_t>(amount);
  if (left < 0) throw UserError("the chat template takes too many steps, or writes too much");
}

const Value* Call::find(std::size_t place, std::string_view keyword) const {
  if (place < arguments.size()) return &arguments[place];
  for (const auto& [name_of, value] : keywords)
    if (name_of == keyword) return &value;
  return nullptr;
}

const Value& Call::at(std::size_t place, std::string_view keyword) const {
  if (const Value* value = find(place, keyword)) return *value;
  throw UserError("'" + shown(name) + "' lacks an argument");
}

const MarkedText& Call::text(std::size_t place) const {
  const Value& value = at(place);
  if (!value.text()) refuse("a text", value);
  return *value.text();
}

void refuse(const std::string& what, const Value& value) {
  const auto* undefined = std::get_if<Undefined>(&value);
  if (undefined) throw UserError("'" + shown(undefined->name) + "' is undefined; expected " + what);
  throw UserError(std::string("expected ") + what + ", not " + value.type());
}

}  // namespace tutti::jinja
