#pragma once

#include <string>

#include "data/chats/jinja_value.h"

namespace tutti::jinja {

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

// Each function throws UserError for an unknown name, and for values without meaning there.
Value call_function(const Call& call);
Value call_filter(const Call& call);
Value call_method(const Call& call);
bool call_test(const Call& call);
bool is_function(const std::string& name);

// Throws UserError if lists and maps lie too deep in each other: their readers and destructors are recursive.
void require_shallow(const Value& value, Work& work, int depth = 0);

// The operator `in`: true if the container has the value.
bool contains(const Value& container, const Value& value);

// A part of a text or list by Python's indices; none: the beginning or end.
Value slice(const Value& value, const Value& from, const Value& to, const Value& step);
// value[index]; undefined where there is none.
Value item(const Value& value, const Value& index);

// The items of a loop: elements, a map's keys, a text's characters. Throws UserError for other values.
List elements(const Value& value);

[[noreturn]] void refuse(const std::string& what, const Value& value);  // UserError

}  // namespace tutti::jinja
