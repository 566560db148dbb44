import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { classifyChanges } from '../../../../src/kubelet/validate/classify-changes.ts';

const catalogue = await loadCatalogue();

function classes(before: JsonObject, after: JsonObject, minor = 36): string[] {
  return classifyChanges(before, after, { minor, catalogue }).map(({ path, class: name, danger }) => `${path} ${name} ${danger ?? '-'}`);
}

describe('fields by which a kubelet does more than run pods', () => {
  it('are these', () => {
    const byKind = new Map<string, string[]>();
    for (const { path, danger } of catalogue.fields.values())
      if (danger !== null) byKind.set(danger.kind, [...(byKind.get(danger.kind) ?? []), path]);
    expect(Object.fromEntries(byKind)).toEqual({
      deletes: ['podLogsDir'],
      executes: ['staticPodPath', 'staticPodURL', 'volumePluginDir'],
      listens: [
        'enableServer',
        'address',
        'port',
        'readOnlyPort',
        'enableDebuggingHandlers',
        'healthzPort',
        'healthzBindAddress',
        'enableSystemLogHandler',
        'enableSystemLogQuery',
        'enableProfilingHandler',
        'enableDebugFlagsHandler',
      ],
      connects: ['staticPodURLHeader', 'tracing.endpoint', 'containerRuntimeEndpoint', 'imageServiceEndpoint'],
      authenticates: [
        'tlsCertFile',
        'tlsPrivateKeyFile',
        'tlsCipherSuites',
        'tlsCurvePreferences',
        'tlsMinVersion',
        'rotateCertificates',
        'serverTLSBootstrap',
        'authentication.x509.clientCAFile',
        'authentication.webhook.enabled',
        'authentication.webhook.cacheTTL',
        'authentication.anonymous.enabled',
        'authorization.mode',
        'authorization.webhook.cacheAuthorizedTTL',
        'authorization.webhook.cacheUnauthorizedTTL',
        'imagePullCredentialsVerificationPolicy',
        'preloadedImagesVerificationAllowlist',
        'featureGates',
      ],
      isolates: ['allowedUnsafeSysctls', 'seccompDefault'],
      'logs-secrets': ['logging.verbosity', 'logging.vmodule', 'logging.vmodule[].verbosity', 'logging.sanitization'],
    });
  });

  it.each<[string, JsonObject, JsonObject, string[], number?]>([
    ['a directory that the kubelet empties', {}, { podLogsDir: '/srv/a' }, ['podLogsDir unsafe deletes']],
    ['a directory of programs', {}, { volumePluginDir: '/opt/p' }, ['volumePluginDir unsafe executes']],
    ['a verbosity that logs Secrets', {}, { logging: { verbosity: 8 } }, ['logging.verbosity unsafe logs-secrets']],
    ['a lower verbosity', { logging: { verbosity: 10 } }, { logging: { verbosity: 7 } }, ['logging.verbosity safe -']],
    [
      'a verbosity of single files',
      {},
      {
        logging: {
          vmodule: [
            { filePattern: 'a', verbosity: 2 },
            { filePattern: 'request', verbosity: 9 },
          ],
        },
      },
      ['logging.vmodule unsafe logs-secrets'],
    ],
    ['low verbosities of files', {}, { logging: { vmodule: [{ filePattern: 'a', verbosity: 7 }] } }, ['logging.vmodule safe -']],
    ['the journal over HTTP', {}, { enableSystemLogQuery: true }, ['enableSystemLogQuery unsafe listens']],
    ['the log files, disabled', {}, { enableSystemLogHandler: false }, ['enableSystemLogHandler safe -']],
    ['the log files, enabled', { enableSystemLogHandler: false }, {}, ['enableSystemLogHandler unsafe listens']],
    ['traces to an address', {}, { tracing: { endpoint: '10.0.0.1:4317' } }, ['tracing.endpoint unsafe connects']],
    ['no traces', { tracing: { endpoint: '10.0.0.1:4317' } }, {}, ['tracing.endpoint safe -']],
    ['seccomp off', { seccompDefault: true }, {}, ['seccompDefault unsafe isolates']],
    ['seccomp on', {}, { seccompDefault: true }, ['seccompDefault new-pods-only -']],
    [
      'a longer cache of tokens',
      {},
      { authentication: { webhook: { cacheTTL: '3m' } } },
      ['authentication.webhook.cacheTTL unsafe authenticates'],
    ],
    ['a shorter cache of tokens', {}, { authentication: { webhook: { cacheTTL: '10s' } } }, ['authentication.webhook.cacheTTL safe -']],
    [
      'longer caches of permissions',
      {},
      { authorization: { webhook: { cacheAuthorizedTTL: '87600h', cacheUnauthorizedTTL: '1s' } } },
      ['authorization.webhook.cacheAuthorizedTTL unsafe authenticates', 'authorization.webhook.cacheUnauthorizedTTL safe -'],
    ],
    ['a client certificate that expires', { rotateCertificates: true }, {}, ['rotateCertificates unsafe authenticates']],
    ['secrets in the log', { logging: { sanitization: true } }, {}, ['logging.sanitization unsafe logs-secrets'], 22],
    ['an unusual value', {}, { fileCheckFrequency: '1µs' }, ['fileCheckFrequency unsafe -']],
    ['back to a usual value', { fileCheckFrequency: '1µs' }, {}, ['fileCheckFrequency safe -']],
    ['an unusual size', {}, { containerLogMaxSize: '100m' }, ['containerLogMaxSize unsafe -']],
    ['nanoseconds', {}, { logging: { flushFrequency: 1 } }, ['logging.flushFrequency unsafe -']],
  ])('%s', (_, before, after, expected, minor) => {
    expect(classes(before, after, minor)).toEqual(expected);
  });

  it('give the reason', () => {
    const [change] = classifyChanges({}, { fileCheckFrequency: '1µs' }, { minor: 36, catalogue });
    expect(change?.reason).toMatch(/^1µs is less than 1s: the kubelet reads the static pods/);
  });
});
