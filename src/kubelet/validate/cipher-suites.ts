const ECDHE = ['ECDSA', 'RSA'].flatMap((key) =>
  [
    'AES_128_CBC_SHA',
    'AES_128_CBC_SHA256',
    'AES_128_GCM_SHA256',
    'AES_256_CBC_SHA',
    'AES_256_GCM_SHA384',
    'CHACHA20_POLY1305',
    'CHACHA20_POLY1305_SHA256',
    'RC4_128_SHA',
  ].map((suite) => `TLS_ECDHE_${key}_WITH_${suite}`),
);

/**
 * The cipher suites that a kubelet accepts, including insecure ones.
 * @see Go 1.15 to 1.26 crypto/tls; k8s.io/component-base cli/flag/ciphersuites_flag.go
 */
export const CIPHER_SUITES: ReadonlySet<string> = new Set([
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  ...ECDHE,
  'TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA',
  'TLS_RSA_WITH_3DES_EDE_CBC_SHA',
  'TLS_RSA_WITH_AES_128_CBC_SHA',
  'TLS_RSA_WITH_AES_128_CBC_SHA256',
  'TLS_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_RSA_WITH_AES_256_CBC_SHA',
  'TLS_RSA_WITH_AES_256_GCM_SHA384',
  'TLS_RSA_WITH_RC4_128_SHA',
]);
