import { isJsonObject } from '../../base/json.ts';
import { formatGoDuration } from '../../base/text/go-duration.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { formatMinor } from '../catalogue/catalogue.ts';
import { durationAt, isTrue, listAt, numberAt, textAt } from '../documents/values.ts';
import { parseGoUrlScheme } from './go-url.ts';
import type { Finding, Rule } from './rule.ts';

const MAX_VERBOSITY = 2 ** 31 - 1;

/** Logs of the kubelet, containers and the node; traces and metrics. */
export const LOGGING_RULES: readonly Rule[] = [
  {
    id: 'KUBELET_FLUSH_FREQUENCY',
    since: 35,
    check: ({ config }) => {
      const path = 'logging.flushFrequency';
      const frequency = durationAt(config, path) ?? 1n;
      return frequency > 0n ? [] : [{ path, message: `must be greater than zero, not ${formatGoDuration(frequency)}` }];
    },
  },
  {
    id: 'KUBELET_VMODULE',
    since: 23,
    check: ({ config }) => {
      const items = listAt(config, 'logging.vmodule');
      const format = textAt(config, 'logging.format');
      const findings = items.flatMap((item, index) => (isJsonObject(item) ? checkModule(item, `logging.vmodule[${index}]`) : []));
      if (items.length === 0 || format === '' || format === 'text') return findings;
      return [
        { path: 'logging.vmodule', near: ['logging.format'], message: `is used only with format text, not ${quoteValue(format)}` },
        ...findings,
      ];
    },
  },
  {
    id: 'KUBELET_TRACING_ENDPOINT',
    since: 25,
    check: ({ config }) => {
      const path = 'tracing.endpoint';
      const text = textAt(config, path);
      const scheme = parseGoUrlScheme(text.includes('//') ? text : `dns://${text}`);
      if (scheme !== null && ['dns', 'unix', 'unix-abstract'].includes(scheme)) return [];
      const what = scheme === null ? 'is not a valid URL' : scheme === '' ? 'has no scheme' : `has the scheme ${scheme}`;
      return [
        {
          path,
          message: `${quoteValue(text)} ${what}: only dns, unix and unix-abstract are supported`,
          hint: 'Write host:port without a scheme',
        },
      ];
    },
  },
  {
    id: 'KUBELET_HIDDEN_METRICS',
    check: ({ config, minor }) => {
      const path = 'showHiddenMetricsForVersion';
      const version = textAt(config, path);
      const only = formatMinor(minor - 1);
      return version === '' || version === only
        ? []
        : [{ path, message: `must be ${only}, the minor before this kubelet, not ${quoteValue(version)}` }];
    },
  },
  {
    id: 'KUBELET_SYSTEM_LOG_QUERY',
    since: 27,
    check: ({ config }) => {
      if (!isTrue(config, 'enableSystemLogQuery') || isTrue(config, 'enableSystemLogHandler')) return [];
      return [{ path: 'enableSystemLogQuery', near: ['enableSystemLogHandler'], message: 'needs enableSystemLogHandler: true' }];
    },
  },
  {
    id: 'KUBELET_LOG_MONITOR',
    since: 30,
    check: ({ config }) => {
      const path = 'containerLogMonitorInterval';
      const interval = durationAt(config, path) ?? THREE_SECONDS;
      return interval >= THREE_SECONDS ? [] : [{ path, message: `must be at least 3s, not ${formatGoDuration(interval)}` }];
    },
  },
  { id: 'KUBELET_POD_LOGS_DIR', since: 30, check: ({ config }) => checkPodLogsDir(textAt(config, 'podLogsDir')) },
  {
    id: 'KUBELET_RUN_ONCE',
    since: 32,
    check: ({ config }) =>
      isTrue(config, 'runOnce') ? [{ path: 'runOnce', message: 'is no longer supported', hint: 'Remove the field' }] : [],
  },
];

const THREE_SECONDS = 3_000_000_000n;

function checkModule(item: Parameters<typeof textAt>[0], path: string): readonly Finding[] {
  const pattern = textAt(item, 'filePattern');
  const verbosity = numberAt(item, 'verbosity') ?? 0;
  const findings: Finding[] = [];
  if (pattern === '') findings.push({ path: `${path}.filePattern`, message: 'must not be empty' });
  if (/[=,]/.test(pattern))
    findings.push({ path: `${path}.filePattern`, message: `${quoteValue(pattern)} must not contain an equals sign or a comma` });
  if (verbosity > MAX_VERBOSITY)
    findings.push({ path: `${path}.verbosity`, message: `must be at most ${MAX_VERBOSITY}, not ${verbosity}` });
  return findings;
}

/** A relative path is valid: the kubelet resolves it against the directory of its file and cleans it. */
function checkPodLogsDir(dir: string): readonly Finding[] {
  const path = 'podLogsDir';
  const findings: Finding[] = [];
  if (dir.startsWith('/') && (/\/\/|\/\.{1,2}(?:\/|$)/.test(dir) || (dir.length > 1 && dir.endsWith('/'))))
    findings.push({
      path,
      message: `${quoteValue(dir)} is not a clean path`,
      hint: 'Write the path without //, . and .., and without a trailing slash',
    });
  if (/[^\x00-\x7f]/.test(dir)) findings.push({ path, message: `${quoteValue(dir)} has non-ASCII characters` });
  return findings;
}
