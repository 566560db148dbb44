import * as z from 'zod';
import { formatGoDuration, parseGoDuration } from '../../base/text/go-duration.ts';
import { formatQuantity, parseQuantity } from '../../base/text/quantity.ts';
import { Secret } from '../../base/text/secret.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { IssueParams } from '../../codec/read-document.ts';
import type { Taint } from '../../kube/taint.ts';
import { isBootstrapToken, isCertificateKey } from './bootstrap-token.ts';

/**
 * Schema parts shared by kubeadm.k8s.io/v1beta4 and v1beta3. Their input is the result of `readDocument`, which drops
 * null members, and empty strings where Go cannot distinguish empty from absent.
 */

/** The value of a schema: read-only on all levels. */
export type Decoded<T> = T extends Secret ? T : { readonly [K in keyof T]: Decoded<T[K]> };

export const optional = z.exactOptional;
export const text = z.string();
export const texts = z.array(text);
export const flag = z.boolean();

/**
 * A schema whose values are parsed further.
 * @param message a text for a secret, which no message may show; otherwise follows the quoted value
 */
function parsed<I extends string | number, T>(
  schema: z.ZodType<I>,
  parse: (written: string) => T | null,
  { message, isSecret = false, ...params }: IssueParams & { readonly message: string; readonly isSecret?: boolean },
) {
  return schema.transform((written, context): T => {
    const value = parse(String(written));
    if (value !== null) return value;
    const shown = isSecret ? { input: '', message } : { input: written, message: `${quoteValue(String(written))} ${message}` };
    context.issues.push({ code: 'custom', ...shown, params });
    return z.NEVER;
  });
}

const DURATION_HINT = 'Write a number with a unit, such as 90s, 5m or 1h30m';

/** metav1.Duration: a string in Go syntax, normalized to Go's format. */
export const duration: z.ZodType<string> = parsed(
  text,
  (written) => {
    const ns = parseGoDuration(written);
    return ns === null ? null : formatGoDuration(ns);
  },
  {
    code: 'CONFIG_INVALID_DURATION',
    hint: DURATION_HINT,
    message: 'is not a duration',
  },
).meta({ hint: DURATION_HINT });

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.,]\d+)?(?:Z|[-+](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** metav1.Time: RFC 3339, kept as written. */
export const time: z.ZodType<string> = parsed(text, (written) => (isRfc3339(written) ? written : null), {
  code: 'CONFIG_INVALID_TIME',
  hint: 'Use a time such as 2030-01-02T03:04:05Z',
  message: 'is not a time in RFC 3339 form',
});

function isRfc3339(written: string): boolean {
  const [, year, month, day] = (RFC_3339.exec(written) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return false;
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
}

/** A bootstrap token; an empty one is an error, as in kubeadm. */
export const token: z.ZodType<Secret> = parsed(text, (written) => (isBootstrapToken(written) ? new Secret(written) : null), {
  code: 'CONFIG_INVALID_TOKEN',
  hint: 'Write six characters, a dot and sixteen characters (a-z and 0-9). To generate a token, run kubeletadm token generate',
  message: 'the value is not a bootstrap token',
  isSecret: true,
});

/** A bootstrap token; an empty one counts as absent. */
export const optionalToken = token.meta({ emptyIsAbsent: true });

/** The key that encrypts the control plane certificates; an empty one counts as absent. */
export const certificateKey = parsed(text, (written) => (isCertificateKey(written) ? new Secret(written) : null), {
  code: 'CONFIG_INVALID_CERTIFICATE_KEY',
  hint: 'Write 64 hexadecimal digits (an AES key of 32 bytes). To generate a key, run kubeletadm certs certificate-key',
  message: 'the value is not a certificate key',
  isSecret: true,
}).meta({ emptyIsAbsent: true });

/** resource.Quantity: a string or a number, normalized to its canonical form. */
const quantity: z.ZodType<string> = parsed(
  z.union([text, z.number()]),
  (written) => {
    const quantity = parseQuantity(written);
    return quantity && formatQuantity(quantity);
  },
  {
    code: 'CONFIG_INVALID_QUANTITY',
    hint: 'Write a number with or without suffix, such as 1, 100m or 64Mi',
    message: 'is not a quantity',
  },
);

export const pullPolicy = z.enum(['Always', 'IfNotPresent', 'Never']);
const hostPathType = z.enum(['DirectoryOrCreate', 'Directory', 'FileOrCreate', 'File', 'Socket', 'CharDevice', 'BlockDevice']);

export const bootstrapTokenSchema = z.strictObject({
  /** Absent: generated when the defaults are applied. */
  token: optional(token),
  description: optional(text),
  ttl: optional(duration),
  expires: optional(time),
  usages: optional(texts),
  groups: optional(texts),
});

export const taint: z.ZodType<Taint> = z.strictObject({
  key: text,
  value: optional(text),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
  timeAdded: optional(time),
});

export const apiEndpoint = z.strictObject({
  advertiseAddress: optional(text),
  bindPort: optional(z.int32()),
});

export const patches = z.strictObject({ directory: optional(text) });

export const networking = z.strictObject({
  /** One CIDR, or an IPv4 and an IPv6 CIDR, comma-separated. */
  serviceSubnet: optional(text),
  podSubnet: optional(text),
  dnsDomain: optional(text),
});

export const imageMeta = { imageRepository: optional(text), imageTag: optional(text) };

export const hostPathMount = z.strictObject({
  name: text,
  hostPath: text,
  mountPath: text,
  readOnly: optional(flag),
  pathType: optional(hostPathType),
});

const keyRef = z.strictObject({ name: optional(text), key: text, optional: optional(flag) });

export const envVar = z.strictObject({
  name: text,
  value: optional(text),
  valueFrom: optional(
    z.strictObject({
      fieldRef: optional(z.strictObject({ apiVersion: optional(text), fieldPath: text })),
      resourceFieldRef: optional(z.strictObject({ containerName: optional(text), resource: text, divisor: optional(quantity) })),
      configMapKeyRef: optional(keyRef),
      secretKeyRef: optional(keyRef),
      fileKeyRef: optional(z.strictObject({ volumeName: text, path: text, key: text, optional: optional(flag) })),
    }),
  ),
});

export const bootstrapTokenDiscovery = z.strictObject({
  token: optional(optionalToken),
  apiServerEndpoint: optional(text),
  caCertHashes: optional(texts),
  unsafeSkipCAVerification: optional(flag),
});

export const fileDiscovery = z.strictObject({ kubeConfigPath: optional(text) });
