#include "io/http/http_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A server on loopback for one request, which it answers with these bytes, or never.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : answer_(std::move(answer)) {
    listening_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    ::bind(listening_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listening_, 1);
    ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswer() {
    ::shutdown(listening_, SHUT_RDWR);
    if (connection_ >= 0) ::shutdown(connection_, SHUT_RDWR);
    thread_.join();
    ::close(listening_);
  }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  const std::string& request() const { return request_; }

 private:
  void serve() {
    connection_ = ::accept(listening_, nullptr, nullptr);
    char bytes[4096];
    for (ssize_t count = 1; count > 0 && request_.find("END") == std::string::npos;) {
      count = ::read(connection_, bytes, sizeof bytes);
      if (count > 0) request_.append(bytes, static_cast<std::size_t>(count));
      if (!answer_.empty() && request_.starts_with("GET") && request_.ends_with("\r\n\r\n")) break;
    }
    if (!answer_.empty()) (void)!::write(connection_, answer_.data(), answer_.size());
    if (!answer_.empty()) ::shutdown(connection_, SHUT_RDWR);
  }

  std::string answer_, request_;
  int listening_ = -1, port_ = 0;
  std::atomic<int> connection_ = -1;
  std::thread thread_;
};

TEST(HttpClientTest, ARequestHasItsBodyAndHeaders) {
  const auto client = open_http({.headers = {"Authorization: Bearer s3cret"}});
  OneAnswer server("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
  const HttpAnswer answer = client->send({"PUT", server.url("/a/b?c=d"), "body END"});
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.body, "none");
  EXPECT_THAT(server.request(),
              AllOf(HasSubstr("PUT /a/b?c=d HTTP/1.1\r\n"), HasSubstr("Content-Length: 8\r\n"),
                    HasSubstr("Authorization: Bearer s3cret\r\n"),
                    HasSubstr("Content-Type: application/json\r\n"), HasSubstr("\r\n\r\nbody END")));
}

TEST(HttpClientTest, ARedirectionIsNotFollowed) {
  OneAnswer server("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(open_http({})->send({"GET", server.url("/")}).status, 302);
}

TEST(HttpClientTest, ADeadServerIsAReasonAndNoError) {
  const HttpAnswer answer = open_http({})->send({"GET", "http://127.0.0.1:1/"});
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.problem, HasSubstr("connect"));
  EXPECT_EQ(open_http({})->send({"GET", "file:///etc/passwd"}).status, 0);
}

TEST(HttpClientTest, ARequestWithoutAnswerCanBeCancelled) {
  OneAnswer server("");
  const auto client = open_http({});
  const auto begin = std::chrono::steady_clock::now();
  std::thread cancels([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    client->cancel();
  });
  EXPECT_EQ(client->send({"GET", server.url("/")}).status, 0);
  cancels.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(HttpClientTest, APartOfAnAddressIsEscaped) {
  EXPECT_EQ(url_part("my digits/ä.png"), "my%20digits%2F%C3%A4.png");
}

}  // namespace
}  // namespace tutti
