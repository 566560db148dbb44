import type { Problem } from '../../base/errors.ts';
import { parseKubernetesVersion } from '../../base/kubernetes-version.ts';
import { isDnsSubdomain } from '../../base/text/dns-subdomain.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import { isGlobalUnicast, isLoopback, isUnspecified, parseIp } from '../../base/text/ip.ts';
import {
  addressNotReachable,
  deadSocket,
  discoveryFileNotHttps,
  invalidAddress,
  invalidArgument,
  invalidDomain,
  invalidEndpoint,
  invalidEtcdUrl,
  invalidImageRepository,
  invalidNodeName,
  invalidPin,
  invalidPort,
  invalidSan,
  invalidSocket,
  invalidTokenGroup,
  invalidVersion,
  negativeDuration,
  notAbsolute,
  socketWithoutScheme,
  unknownTokenUsage,
} from '../../codec/document-problems.ts';
import { correctedSocket, deadSocketReason } from '../../kubelet/facts/cri-socket.ts';
import { parseCaPin } from '../../x509/ca-pin.ts';
import { isBootstrapGroup, TOKEN_USAGES } from './bootstrap-token.ts';

/** Rules for single values, as in kubeadm 1.36 unless noted. Each returns the problem, or null. */
export type Rule = (value: string) => Problem | null;

export const nodeName: Rule = (name) => (isDnsSubdomain(name.trim().toLowerCase()) ? null : invalidNodeName(name));

/**
 * A plain path gets a warning and `unix://`. Stricter than kubeadm: the path must be absolute, without
 * control characters, which the flag of older kubelets cannot hold.
 */
export const criSocket: Rule = (socket) => {
  if (/\p{Cc}/u.test(socket)) return invalidSocket(socket, null);
  const isUrl = /^unix:(?:\/\/\/+|\/)[^/]/.test(socket);
  if (!isUrl && !/^\/+[^/]/.test(socket)) return invalidSocket(socket, correctedSocket(socket));
  const reason = deadSocketReason(socket);
  if (reason !== null) return deadSocket(socket, reason);
  return isUrl ? null : socketWithoutScheme(socket);
};

/** Stricter than kubeadm, which requires only a name: leading dashes, `=` and spaces are rejected. */
export const argumentName: Rule = (name) => (/^[^-=\s][^=\s]*$/.test(name) ? null : invalidArgument(name));

export const absolutePath: Rule = (path) => (path.startsWith('/') ? null : notAbsolute(path));

export const caCertPath: Rule = (path) => (path.startsWith('/') && path.endsWith('.crt') ? null : notAbsolute(path, '.crt'));

/**
 * The address that the API server advertises. An unspecified address selects the default route's address, a
 * loopback address a global one of the loopback interface. Stricter than kubeadm: no leading zeros, which
 * other programs parse as octal.
 */
export const advertiseAddress: Rule = (text) => {
  const address = parseIp(text);
  if (!address) return invalidAddress(text);
  return isUnspecified(address) || isLoopback(address) || isGlobalUnicast(address) ? null : addressNotReachable(text);
};

export function port(value: number): Problem | null {
  return Number.isInteger(value) && value >= 1 && value <= 65535 ? null : invalidPort(value);
}

/** `host`, `host:port`, an IPv6 address, or `[IPv6]:port`. */
export const controlPlaneEndpoint: Rule = (text) => {
  if (SCHEME.test(text)) return invalidEndpoint(text, false);
  const { host, port: portText } = splitHostPort(text) ?? { host: text, port: '' };
  if (portText !== '' && !isPort(portText)) return invalidPort(portText);
  return parseIp(host) || isDnsSubdomain(host) ? null : invalidEndpoint(text, false);
};

/** `host:port`. Stricter than kubeadm, which accepts any text with one colon. */
export const apiServerEndpoint: Rule = (text) => {
  if (SCHEME.test(text)) return invalidEndpoint(text, true);
  const parts = splitHostPort(text);
  if (!parts || parts.host === '' || parts.port === '' || !(parseIp(parts.host) || isDnsSubdomain(parts.host.toLowerCase())))
    return invalidEndpoint(text, true);
  return isPort(parts.port) ? null : invalidPort(parts.port);
};

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:\/\//;

function isPort(text: string): boolean {
  return /^[0-9]{1,5}$/.test(text) && port(Number(text)) === null;
}

/**
 * Splits host and port like Go's net.SplitHostPort.
 * @returns null when the port is missing, or brackets and colons are inconsistent
 */
export function splitHostPort(text: string): { readonly host: string; readonly port: string } | null {
  const match = /^\[([^[\]]*)\]:([^:[\]]*)$/.exec(text) ?? /^([^:[\]]*):([^:[\]]*)$/.exec(text);
  return match && { host: match[1] as string, port: match[2] as string };
}

/** Joins host and port; adds brackets to an IPv6 address. */
export function joinHostPort(host: string, portNumber: number | string): string {
  return host.includes(':') ? `[${host}]:${portNumber}` : `${host}:${portNumber}`;
}

/** A URL of etcd. Stricter than kubeadm: http or https, with a host. */
export function etcdUrl(text: string, needsHttps: boolean): Problem | null {
  const fits = /^(https?):\/\/(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::([0-9]+))?\/?$/.exec(text);
  if (!fits || (needsHttps && fits[1] !== 'https')) return invalidEtcdUrl(text, needsHttps);
  return fits[2] === undefined || isPort(fits[2]) ? null : invalidPort(fits[2]);
}

/** A path, or an https URL. The existence of the file is checked when it is read. */
export const discoveryFile: Rule = (text) => {
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined || scheme === 'file') return null;
  return scheme === 'https' && URL.canParse(text) && !/\s/.test(text) ? null : discoveryFileNotHttps();
};

const LIKE_IPV4 = /^\d+(?:\.\d+){3}$/;
const PATH_COMPONENT = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const DOMAIN_COMPONENT = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const DOMAIN = `(?:${DOMAIN_COMPONENT}(?:\\.${DOMAIN_COMPONENT})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const REPOSITORY = new RegExp(`^(?:${DOMAIN}|(?:${DOMAIN}/)?${PATH_COMPONENT}(?:/${PATH_COMPONENT})*)$`);

/** A valid prefix of `/name:tag` in an image reference. */
export const imageRepository: Rule = (text) => (REPOSITORY.test(text) ? null : invalidImageRepository(text));

/**
 * A SAN: an IP address, a DNS name, or a wildcard name (`*.`). Stricter than kubeadm: a name that looks like
 * an IPv4 address must be one, without leading zeros.
 */
export const certSan: Rule = (text) =>
  (isDnsSubdomain(text) && !LIKE_IPV4.test(text)) || (text.startsWith('*.') && isDnsSubdomain(text.slice(2))) || parseIp(text)
    ? null
    : invalidSan(text);

export const kubernetesVersion: Rule = (text) => (parseKubernetesVersion(text) ? null : invalidVersion(text));

export const dnsDomain: Rule = (text) => (isDnsSubdomain(text) ? null : invalidDomain(text));

/** A timeout or TTL in Go syntax. Stricter than kubeadm: not negative. */
export function notNegative(duration: string, hint?: string): Problem | null {
  return (parseGoDuration(duration) ?? 0n) < 0n ? negativeDuration(duration, hint) : null;
}

export const tokenUsage: Rule = (usage) =>
  (TOKEN_USAGES as readonly string[]).includes(usage) ? null : unknownTokenUsage(usage, TOKEN_USAGES);

export const tokenGroup: Rule = (group) => (isBootstrapGroup(group) ? null : invalidTokenGroup(group));

/** A CA pin; kubeadm validates it only when it connects. */
export const caPin: Rule = (pin) => (parseCaPin(pin) === null ? invalidPin(pin) : null);
