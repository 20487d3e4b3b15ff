package watch

import (
	"crypto/tls"
	"errors"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// access says, for logs, how a source reaches its server.
type access struct{ server, authority, credentials string }

func accessOf(config *rest.Config) access {
	return access{
		server:      config.Host,
		authority:   place("those of the host", "certificates", config.CAFile, len(config.CAData) > 0),
		credentials: credentialsOf(config),
	}
}

// credentialsOf names what client-go shows to a server, first what it prefers.
func credentialsOf(config *rest.Config) string {
	switch {
	case config.BearerTokenFile != "" || config.BearerToken != "":
		return place("", "token", config.BearerTokenFile, true)
	case config.Username != "":
		return "password of " + config.Username
	}
	return place("none", "certificate", config.CertFile, len(config.CertData) > 0)
}

// place says where a thing is from: a file, the kubeconfig, or nowhere.
func place(nowhere, thing, file string, given bool) string {
	switch {
	case file != "":
		return thing + " in " + file
	case given:
		return thing + " in the kubeconfig"
	}
	return nowhere
}

// fields name what may be why a request failed, where its error does not.
func (a access) fields(err error) []zap.Field {
	fields := []zap.Field{zap.String("server", a.server)}
	var untrusted *tls.CertificateVerificationError
	switch {
	case apierrors.IsUnauthorized(err):
		fields = append(fields, zap.String("credentials", a.credentials))
	case errors.As(err, &untrusted):
		fields = append(fields, zap.String("certificateAuthority", a.authority))
	}
	return fields
}
