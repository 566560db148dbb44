/** A kubeconfig with a token, for clusters to which no connection is made. */
export const TOKEN_KUBECONFIG = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'c', cluster: { server: 'https://cluster.test:6443' } }],
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  users: [{ name: 'u', user: { token: 't' } }],
  'current-context': 'c',
});
