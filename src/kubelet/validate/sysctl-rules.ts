import { upTo } from '../../base/text/up-to.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { Minor } from '../catalogue/catalogue.ts';
import { entriesAt, listAt } from '../documents/values.ts';
import type { Finding, Rule } from './rule.ts';

const MAX_LENGTH = 253;
const NAME = /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;
/** A name, or its beginning before `*`. */
const PATTERN = /^(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*(?:[a-z0-9][-_a-z0-9]*)?[a-z0-9*]$/;
const NAMESPACED = /^(?:kernel\.(?:sem|shmall|shmmax|shmmni|shm_rmid_forced|shm|msgmax|msgmnb|msgmni|msg)$|net\.|fs\.mqueue\.)/;
const NAMESPACED_SINCE_37 = /^(?:kernel\.domainname$|user\.)/;

/**
 * Sysctls of all Pods: the kubelet checks their names while their gate is enabled.
 * @see kubernetes/kubernetes pkg/kubelet/apis/config/validation (1.37)
 */
export const SYSCTL_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_SYSCTL',
    since: 37,
    check: ({ config, gates, minor }) => {
      if (!gates.isEnabled('DefaultPodSysctls')) return [];
      const names = entriesAt(config, 'defaultPodSysctls').map(([name]) => name);
      const seen = new Set<string>();
      return names.flatMap((name): Finding[] => {
        const path = `defaultPodSysctls[${name}]`;
        if (name.length > MAX_LENGTH || !NAME.test(name)) return [{ path, message: notAName(name) }];
        const normalized = withDots(name);
        const isRepeated = seen.has(normalized);
        seen.add(normalized);
        return [
          ...(isNamespaced(normalized, minor) ? [] : [{ path, message: notNamespaced(name) }]),
          ...(isRepeated ? [{ path, message: `${quoteValue(normalized)} occurs twice, with dots and with slashes` }] : []),
        ];
      });
    },
  },
];

/** Sysctls that Pods may set: the kubelet checks them when it starts. */
export const SYSCTL_STARTUP_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_START_SYSCTL',
    check: ({ config, minor }) =>
      listAt(config, 'allowedUnsafeSysctls').flatMap((name, index): Finding[] => {
        const path = `allowedUnsafeSysctls[${index}]`;
        const text = String(name);
        if (text.length > MAX_LENGTH || !PATTERN.test(text)) return [{ path, message: notAName(text) }];
        return isNamespaced(upTo(withDots(text), '*'), minor) ? [] : [{ path, message: notNamespaced(text) }];
      }),
  },
];

function isNamespaced(name: string, minor: Minor): boolean {
  return NAMESPACED.test(name) || (minor >= 37 && NAMESPACED_SINCE_37.test(name));
}

/** A name whose first separator is a slash has slashes and dots swapped, as sysctl(8) reads it. */
function withDots(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  if (first !== '/') return name;
  return name.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));
}

function notAName(text: string): string {
  return `${quoteValue(text)} is not a sysctl name`;
}

function notNamespaced(text: string): string {
  return `${quoteValue(text)} is not a namespaced sysctl that the kubelet knows`;
}
