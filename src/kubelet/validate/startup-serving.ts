import { formatGoDuration } from '../../base/text/go-duration.ts';
import { parseIp } from '../../base/text/ip.ts';
import { parseQuantity, quantityValue } from '../../base/text/quantity.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { durationAt, listAt, numberAt, textAt, valueAt } from '../documents/values.ts';
import { deadSocketReason } from '../facts/cri-socket.ts';
import { parseGoUrlScheme } from './go-url.ts';
import { type Finding, type Rule, unknownEnumValue } from './rule.ts';

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
const CIPHER_SUITES: ReadonlySet<string> = new Set([
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

const CIPHER_NAMES = [...CIPHER_SUITES];

/** Enumerations that the kubelet checks only at startup. */
const WORDS: readonly (readonly [path: string, words: readonly string[]])[] = [
  ['tlsMinVersion', ['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13']],
  ['authorization.mode', ['AlwaysAllow', 'Webhook']],
  ['configMapAndSecretChangeDetectionStrategy', ['Get', 'Cache', 'Watch']],
  ['cgroupDriver', ['systemd', 'cgroupfs']],
];

/** The first minor that supports a minimum of TLS 1.3. */
const TLS13_SINCE = 15;

/** Settings that the kubelet checks only when it starts serving, and then exits. */
export const SERVING_STARTUP_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_START_UNKNOWN_WORD',
    check: ({ config, minor }) =>
      WORDS.flatMap(([path, all]): Finding[] => {
        const word = textAt(config, path);
        const words = all.filter((known) => known !== 'VersionTLS13' || minor >= TLS13_SINCE);
        return word === '' || words.includes(word) ? [] : [{ path, ...unknownEnumValue(word, words) }];
      }),
  },
  {
    id: 'KUBELET_START_CIPHER_SUITE',
    check: ({ config }) =>
      listAt(config, 'tlsCipherSuites').flatMap((name, index): Finding[] => {
        if (CIPHER_SUITES.has(String(name))) return [];
        const message = `unknown cipher suite ${quoteValue(String(name))}`;
        return [{ path: `tlsCipherSuites[${index}]`, message, guess: { word: String(name), among: CIPHER_NAMES } }];
      }),
  },
  {
    id: 'KUBELET_START_CERTIFICATE_PAIR',
    check: ({ config }) => {
      const [set, other] =
        textAt(config, 'tlsCertFile') === '' ? ['tlsPrivateKeyFile', 'tlsCertFile'] : ['tlsCertFile', 'tlsPrivateKeyFile'];
      if (textAt(config, set) === '' || textAt(config, other) !== '') return [];
      return [{ path: set, near: [other], message: `needs ${other} as well` }];
    },
  },
  {
    id: 'KUBELET_START_SYNC_FREQUENCY',
    check: ({ config }) => {
      const frequency = durationAt(config, 'syncFrequency') ?? 1n;
      return frequency > 0n ? [] : [{ path: 'syncFrequency', message: `must be above zero, not ${formatGoDuration(frequency)}` }];
    },
  },
  {
    id: 'KUBELET_START_LOG_ROTATION',
    check: ({ config }) => {
      const path = 'containerLogMaxSize';
      const text = textAt(config, path);
      const quantity = parseQuantity(text);
      if (text === '' || (quantity !== null && fits64Bits(quantityValue(quantity)))) return [];
      return [{ path, message: `${quoteValue(text)} is not a size`, hint: 'Example: 10Mi' }];
    },
  },
  {
    id: 'KUBELET_START_LOG_ROTATION',
    until: 32,
    check: ({ config }) => {
      const files = numberAt(config, 'containerLogMaxFiles') ?? 2;
      return files > 1 ? [] : [{ path: 'containerLogMaxFiles', message: `must be 2 or more, not ${files}` }];
    },
  },
  {
    id: 'KUBELET_START_ENDPOINT',
    since: 27,
    check: ({ config }) =>
      ['containerRuntimeEndpoint', 'imageServiceEndpoint'].flatMap((path): Finding[] => {
        const text = textAt(config, path);
        const reason = deadSocketReason(text);
        if (reason !== null) return [{ path, message: `${quoteValue(text)} is not the socket of a container runtime: ${reason}` }];
        const scheme = parseGoUrlScheme(text);
        if (scheme === 'unix' || scheme === 'tcp' || scheme === '') return [];
        return [{ path, message: `${quoteValue(text)} is not a socket address`, hint: 'Example: unix:///run/containerd/containerd.sock' }];
      }),
  },
  {
    id: 'KUBELET_START_IPTABLES_BITS',
    until: 27,
    check: ({ config }) => {
      const [drop, masquerade] = [numberAt(config, 'iptablesDropBit'), numberAt(config, 'iptablesMasqueradeBit')];
      if (drop !== masquerade || valueAt(config, 'makeIPTablesUtilChains') === false) return [];
      return [{ path: 'iptablesMasqueradeBit', near: ['iptablesDropBit'], message: `must differ from iptablesDropBit (${drop})` }];
    },
  },
];

/** Values that the kubelet ignores. */
export const IGNORED_VALUE_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_IGNORED_VALUE',
    check: ({ config }) =>
      listAt(config, 'clusterDNS').flatMap((address, index): Finding[] =>
        parseIp(String(address)) !== null
          ? []
          : [
              {
                path: `clusterDNS[${index}]`,
                message: `${quoteValue(String(address))} is not an IP address: the kubelet ignores the entry`,
              },
            ],
      ),
  },
];

function fits64Bits(value: bigint): boolean {
  return value < 2n ** 63n && value >= -(2n ** 63n);
}
