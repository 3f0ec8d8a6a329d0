#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tutti {

struct HttpRequest {
  std::string method;  // "GET", "POST", "PUT"
  std::string url;     // http:// or https://
  std::string body = "";
  std::string content_type = "application/json";  // of the body
};

struct HttpAnswer {
  int status = 0;       // 200, 404, ...; 0 = no answer
  std::string body;     // of at most 64 MiB
  std::string problem;  // the reason why there is no answer
};

struct HttpSettings {
  std::vector<std::string> headers = {};  // of each request: "Authorization: Bearer ..."
  bool verifies = true;                   // the server's certificate
  std::string certificates = "";          // a file of trusted certificates; "" = the system's
};

// Sends requests, one after the other, over a connection that is kept. No redirection is followed.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Takes at most five seconds to connect and 30 in all; throws nothing.
  virtual HttpAnswer send(const HttpRequest& request) = 0;
  // Ends the current request within a second, and all later ones at once. From any thread.
  virtual void cancel() = 0;
};

// Null in simulations and replays, which reach no server.
using OpenHttp = std::function<std::unique_ptr<HttpClient>(const HttpSettings& settings)>;

// By libcurl, which is looked up here: the build needs no header of libcurl. Throws UserError if there is no
// libcurl.
std::unique_ptr<HttpClient> open_http(const HttpSettings& settings);

// A text as a part of a URL's path, or as a value of the URL's query.
std::string url_part(const std::string& text);

}  // namespace tutti
